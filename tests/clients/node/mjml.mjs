// What the reference implementation of MJML makes of templates: their HTML, in order.
import { readFileSync } from "node:fs";
import mjml2html from "mjml";

const { templates } = JSON.parse(readFileSync(0, "utf8"));
const made = templates.map((source) => {
  const { html, errors } = mjml2html(source, { validationLevel: "soft", fonts: {} });
  return { html, errors: errors.map((each) => each.formattedMessage) };
});
console.log(JSON.stringify(made));
