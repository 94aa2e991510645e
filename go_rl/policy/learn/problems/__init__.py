"""Problems for pretraining a policy, by objective."""
