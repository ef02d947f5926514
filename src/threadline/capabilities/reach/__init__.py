"""What people get: mail, consent, feedback, broadcasts, journeys, alerts, and the inbox of development."""
