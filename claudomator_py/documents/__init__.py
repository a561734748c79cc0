"""From the text of task and configuration files to parsed values, or problems with their places."""
