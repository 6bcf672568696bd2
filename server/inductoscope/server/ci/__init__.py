"""What a check tells the machines that guard a repository: SARIF, and which findings are new against a baseline."""
