"""What the events of the seeded world say: pools of plausible properties and contexts, built once per world."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Payload = dict[str, Any]

POOL_SIZE = 512
"""Different payloads of one type. Building one per event would cost more than everything else."""

_PRODUCTS = ("Trail shoe", "Rain jacket", "Wool sock", "Day pack", "Head torch", "Water bottle", "Tent", "Sleeping mat")
_CATEGORIES = ("footwear", "clothing", "clothing", "bags", "light", "kitchen", "shelter", "shelter")
_CHANNELS = ("whatsapp", "email", "chat", "instagram")
_CURRENCIES = ("BRL",) * 6 + ("USD",) * 3 + ("EUR",)
_AGENTS = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0",
    "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile",
)
LOCALES = (("pt-BR", "America/Sao_Paulo"), ("en-US", "America/New_York"), ("de-DE", "Europe/Berlin"))


def payload_pools(random: Random) -> dict[str, list[Payload]]:
    """For each type of event `POOL_SIZE` payloads, decided by the random source."""
    return {kind: [build(random) for _ in range(POOL_SIZE)] for kind, build in _BUILDERS.items()}


def contexts(random: Random) -> list[Payload]:
    """`POOL_SIZE` contexts as a browser client sends them; every so many, as there are `LOCALES`, are of one place."""
    return [_context(random, *LOCALES[number % len(LOCALES)]) for number in range(POOL_SIZE)]


def _context(random: Random, locale: str, zone: str) -> Payload:
    context: Payload = {
        "library": {"name": "analytics.js", "version": "next-1.76.0"},
        "ip": f"198.51.{random.randrange(256)}.{random.randrange(256)}",
        "locale": locale,
        "timezone": zone,
        "userAgent": random.choice(_AGENTS),
    }
    if random.random() < 0.2:
        context["campaign"] = {"name": f"launch-{random.randrange(40)}", "source": "newsletter", "medium": "email"}
    return context


def _product(random: Random) -> Payload:
    number = random.randrange(2_000)
    return {
        "product_id": f"sku-{number:05d}",
        "name": _PRODUCTS[number % len(_PRODUCTS)],
        "category": _CATEGORIES[number % len(_PRODUCTS)],
        "price": _money(random),
    }


def _money(random: Random) -> float:
    """An amount with two decimals; the shortest decimal text of such a float is exact."""
    return random.randrange(500, 50_000) / 100


def _product_viewed(random: Random) -> Payload:
    return {**_product(random), "currency": random.choice(_CURRENCIES), "position": random.randrange(24)}


def _page(random: Random) -> Payload:
    path = f"/{random.choice(_CATEGORIES)}/{random.randrange(400)}"
    return {"path": path, "url": f"https://shop.example.com{path}", "title": random.choice(_PRODUCTS)}


def _purchase_completed(random: Random) -> Payload:
    products = [{**_product(random), "quantity": random.randrange(1, 4)} for _ in range(random.choice((1, 1, 1, 2)))]
    cents = sum(round(product["price"] * 100) * product["quantity"] for product in products)
    return {
        "total": cents / 100,
        "currency": random.choice(_CURRENCIES),
        "payment_method": random.choice(("card", "pix", "invoice")),
        "product_id": products[0]["product_id"],
        "product_name": products[0]["name"],
        "products": products,
    }


def _purchase_refunded(random: Random) -> Payload:
    return {"reason": random.choice(("did not fit", "arrived late", "damaged", "changed my mind"))}


def _purchase_abandoned(random: Random) -> Payload:
    return {**_product(random), "total": _money(random), "currency": random.choice(_CURRENCIES), "step": "payment"}


def _conversation_started(random: Random) -> Payload:
    category = random.choice(("support", "sales", "sales", "order"))
    topic = random.choice(("delivery", "size", "return", "price"))
    return {"channel": random.choice(_CHANNELS), "category": category, "topic": topic}


def _conversation_ended(random: Random) -> Payload:
    return {
        "channel": random.choice(_CHANNELS),
        "message_count": random.randrange(2, 30),
        "response_time_seconds": random.randrange(2, 900),
        "duration_seconds": random.randrange(30, 3_600),
        "resolved": random.random() < 0.8,
    }


def _sentiment_detected(random: Random) -> Payload:
    score = random.randrange(-100, 101) / 100
    label = "positive" if score > 0.2 else "negative" if score < -0.2 else "neutral"
    return {"score": score, "label": label, "channel": random.choice(_CHANNELS)}


def _campaign_delivered(random: Random) -> Payload:
    number = random.randrange(60)
    return {"campaign_id": f"campaign-{number:03d}", "channel": "email", "subject": f"New this week, no. {number}"}


def _campaign_engaged(random: Random) -> Payload:
    action = random.choice(("open", "open", "click"))
    return {"action": action, "channel": "email", "link_url": "https://shop.example.com/new"}


def _identify(random: Random) -> Payload:
    return {
        "firstName": random.choice(("Ana", "Bruno", "Clara", "David", "Eva", "Felix")),
        "lastName": random.choice(("Almeida", "Berger", "Costa", "Dias", "Evans")),
        "plan": random.choice(("free", "plus", "pro")),
        "createdAt": f"2024-{random.randrange(1, 13):02d}-{random.randrange(1, 29):02d}T09:00:00Z",
    }


def _interest_detected(random: Random) -> Payload:
    return {"topic": random.choice(_CATEGORIES), "confidence": random.randrange(101) / 100, "source": "browsing"}


def _product_asked(random: Random) -> Payload:
    return {**_product(random), "question": "Is this available in another size?", "channel": random.choice(_CHANNELS)}


def _discount_requested(random: Random) -> Payload:
    return {**_product(random), "requested_percent": random.randrange(5, 40), "channel": random.choice(_CHANNELS)}


def _form_submitted(random: Random) -> Payload:
    answers = {
        "How did you hear of us?": random.choice(("friend", "search", "advert")),
        "Size?": random.randrange(36, 47),
    }
    return {"form_id": f"form-{random.randrange(8)}", "answers": answers}


def _subscription_created(random: Random) -> Payload:
    return {"plan": random.choice(("plus", "pro")), "total": _money(random), "currency": random.choice(_CURRENCIES)}


def _agent_insight(random: Random) -> Payload:
    key, value = random.choice((("size", "42"), ("style", "light"), ("season", "winter"), ("season", "summer")))
    return {"type": "preference", "key": key, "value": value, "confidence": random.randrange(30, 90) / 100}


def _objection_raised(random: Random) -> Payload:
    objection = random.choice(("price", "delivery time", "return policy"))
    return {"objection": objection, "text": f"The {objection} does not suit me.", "channel": random.choice(_CHANNELS)}


_BUILDERS: dict[str, Callable[[Random], Payload]] = {
    "agent_insight": _agent_insight,
    "campaign_delivered": _campaign_delivered,
    "campaign_engaged": _campaign_engaged,
    "conversation_ended": _conversation_ended,
    "conversation_started": _conversation_started,
    "discount_requested": _discount_requested,
    "form_submitted": _form_submitted,
    "identify": _identify,
    "interest_detected": _interest_detected,
    "objection_raised": _objection_raised,
    "page": _page,
    "product_asked": _product_asked,
    "product_viewed": _product_viewed,
    "purchase_abandoned": _purchase_abandoned,
    "purchase_completed": _purchase_completed,
    "purchase_refunded": _purchase_refunded,
    "sentiment_detected": _sentiment_detected,
    "subscription_created": _subscription_created,
}
