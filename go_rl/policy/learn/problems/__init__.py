"""What a policy is pretrained on, by objective."""
