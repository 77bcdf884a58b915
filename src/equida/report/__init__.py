"""Tables, figures and the page: what a folder of runs shows to a reader."""
