"""How mails and notifications reach Threadline where nobody calls its API: a Maildir, LMTP or SMTP, and SQS."""
