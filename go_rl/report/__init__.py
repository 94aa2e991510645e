"""Tables, figures, timelines and the page."""
