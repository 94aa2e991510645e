"""Training the policy: PPO, pretraining, fine-tuning, checkpoints, logs."""
