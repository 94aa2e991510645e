"""Configurations of Hugging Face models, without weights."""
