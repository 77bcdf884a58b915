"""Tables, figures and the page: what a folder of runs says."""
