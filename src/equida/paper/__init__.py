"""The paper: its tables, figures and claims beside what runs give, and its theory."""
