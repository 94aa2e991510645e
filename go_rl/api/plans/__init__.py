"""Plans and splits: checked, shown, carried out, run."""
