"""Networks of the zoo as recipes that are traced."""
