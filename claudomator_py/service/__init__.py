"""What anyone can ask of Claudomator, and the loop that observes, plans and acts."""
