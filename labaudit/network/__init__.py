"""What a trial may reach: the policy (pure), the proxy that enforces it, and the test that shows it holds."""
