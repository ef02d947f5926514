"""Other people's formats to `Event` and back: pure translation, one file per format.

Segment's tracking API (also RudderStack and Twilio), CloudEvents, bounces and replies of mail, SNS and SES, Arrow. Each
format decodes bytes and headers to events, or to rejections that say why.

    >>> from threadline.wire import cloudevents
    >>> headers = {
    ...     "content-type": "application/json", "ce-specversion": "1.0", "ce-id": "order-1001", "ce-source": "/shop",
    ...     "ce-type": "purchase_completed", "ce-subject": "email:ada@example.com",
    ... }
    >>> decoded = cloudevents.decode(b'{"total": 29.33}', headers, source="orders", workspace="default", received_at=1)
    >>> [(event.type, event.properties) for event in decoded.results]
    [('purchase_completed', {'total': 29.33})]
"""
