"""Files written whole, and JSON read strictly."""
