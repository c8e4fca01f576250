"""The best channel for a policy: A-optimal designs over the policy's cone."""
