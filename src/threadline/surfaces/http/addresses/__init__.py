"""What answers that is no wire of events: operations, the console, GraphQL, agents, public routes, health."""
