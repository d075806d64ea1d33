/**
 * "Try it" at each operation of the reference. The key stays in a variable of this page: it is never stored, and goes
 * nowhere but into the header of the request that is sent to this server.
 */

const MAX_SHOWN_CHARS = 200_000;
const LANGUAGES_AT = "/docs/programs";
const LOOK_EVERY_MS = 1000;
const SOUND = /\.(mp3|wav|opus|ogg|flac|aac)$/;
const SHOWN_HEADERS = ["content-type", "x-request-id", "x-served-by", "retry-after", "location"];

let key = "";
/** @type {Promise<any> | undefined} */
let description;

for (const place of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details.try"))) {
  place.hidden = false;
  place.addEventListener("toggle", () => fill(place), { once: true });
}

/** Makes the form of an operation from the OpenAPI description, which is fetched once. */
async function fill(place) {
  description ??= fetch("/openapi.json").then((response) => response.json());
  try {
    const { method, path } = place.dataset;
    const operation = (await description).paths[path][method.toLowerCase()];
    place.append(form(method, path, operation, (await description).components.schemas));
  } catch (problem) {
    description = undefined;
    place.append(element("p", { role: "alert", textContent: `The description of this operation could not be loaded: ${problem.message}` }));
  }
}

function form(method, path, operation, schemas) {
  const parameters = (operation.parameters ?? []).map((parameter) => {
    const example = parameter.example ?? parameter["x-shown-value"] ?? parameter.schema.examples?.[0] ?? parameter.schema.default ?? "";
    return { ...parameter, input: element("input", { value: String(example), spellcheck: false, autocomplete: "off" }) };
  });
  const [contentType, media] = bodyOf(operation);
  const parts = contentType === "multipart/form-data" ? formParts(media, schemas) : [];
  const text = element("textarea", { rows: 8, spellcheck: false, value: bodyText(media, schemas) });
  const keyInput = element("input", { type: "password", value: key, autocomplete: "off", spellcheck: false, placeholder: "sk-…" });
  keyInput.addEventListener("focus", () => { keyInput.value = key; });
  keyInput.addEventListener("input", () => { key = keyInput.value.trim(); });
  const send = element("button", { className: "button", type: "submit", textContent: "Send" });
  const stop = element("button", { className: "button", type: "button", textContent: "Stop", hidden: true });
  const result = element("div", { className: "tried" });
  const status = element("p", { role: "status" });
  const whole = element("form", {},
    ...(operation.security ? [labelled("API key, which stays in this page's memory until you leave it", keyInput)] : []),
    ...parameters.map((each) => labelled(`${each.name} (${each.in}${each.required ? ", required" : ""})`, each.input)),
    ...parts.map((part) => labelled(part.name, part.input)),
    ...(contentType && !parts.length ? [labelled(`Body, ${contentType}`, text)] : []),
    element("p", {}, send, " ", stop), status, result);
  let current = new AbortController();
  stop.addEventListener("click", () => current.abort());
  whole.addEventListener("submit", async (event) => {
    event.preventDefault();
    current.abort();
    const mine = current = new AbortController();
    result.replaceChildren();
    stop.hidden = false;
    status.textContent = "Sent. Waiting for the response.";
    try {
      const request = readRequest(method, path, operation, parameters, contentType, parts, text);
      const answer = await exchange(request, mine.signal, status, result);
      if (answer.isOk) await showPrograms(request, answer, mine.signal, result);
      await follow(request, answer, mine.signal, status, result);
    } catch (problem) {
      if (mine !== current) return;
      status.textContent = mine.signal.aborted ? "Stopped." : `Not sent, or broken off: ${problem.message}`;
    }
    if (mine === current) stop.hidden = true;
  });
  return whole;
}

function bodyOf(operation) {
  const content = operation.requestBody?.content ?? {};
  const type = content["application/json"] ? "application/json" : Object.keys(content)[0] ?? "";
  return [type, content[type]];
}

function bodyText(media, schemas) {
  const example = media?.example ?? Object.values(media?.examples ?? {})[0]?.value ?? resolved(media?.schema, schemas)?.example;
  return typeof example === "object" ? JSON.stringify(example, null, 2) : "";
}

function resolved(schema, schemas) {
  return schema?.$ref ? schemas[schema.$ref.split("/").pop()] : schema;
}

function formParts(media, schemas) {
  return Object.entries(resolved(media.schema, schemas).properties).map(([name, part]) => {
    const isFile = part.format === "binary";
    const value = isFile ? "" : String(media.example?.[name] ?? part.default ?? "");
    return { name, input: element("input", isFile ? { type: "file" } : { value, spellcheck: false, autocomplete: "off" }) };
  });
}

function readRequest(method, path, operation, parameters, contentType, parts, text) {
  const headers = new Headers();
  const query = new URLSearchParams();
  let address = path;
  for (const { name, in: where, required, input } of parameters) {
    if (required && !input.value) throw new Error(`${name} is missing.`);
    if (where === "path") address = address.replace(`{${name}}`, encodeURIComponent(input.value));
    else if (input.value && where === "query") query.set(name, input.value);
    else if (input.value) headers.set(name, input.value);
  }
  if (operation.security) {
    if (!key) throw new Error("The API key is missing.");
    headers.set("Authorization", `Bearer ${key}`);
  }
  let body;
  if (parts.length) {
    body = new FormData();
    for (const { name, input } of parts) {
      const value = input.type === "file" ? input.files[0] : input.value;
      if (value) body.append(name, value);
    }
  } else if (text.value.trim()) {
    body = text.value;
    headers.set("Content-Type", contentType);
  }
  return { method, address: query.size ? `${address}?${query}` : address, headers, body };
}

/** Shows the progress of a task that was made, and its result. */
async function follow({ method, headers }, { text }, signal, status, result) {
  const [, task] = (method === "POST" && /"task_id": "([\w-]+)",\s+"task_status": "(?:PENDING|RUNNING)"/.exec(text)) || [];
  if (!task) return;
  const request = { method: "GET", address: `/api/v1/tasks/${task}`, headers: new Headers({ Authorization: headers.get("Authorization") }), body: undefined };
  for (let output = { task_status: "PENDING" }; ["PENDING", "RUNNING"].includes(output?.task_status);) {
    await new Promise((resolve) => { setTimeout(resolve, LOOK_EVERY_MS); });
    const response = await fetch(request.address, { headers: request.headers, signal, credentials: "omit", cache: "no-store" });
    ({ output } = await response.json());
    status.textContent = `The task is ${output?.task_status}${output?.progress ? `, ${Math.round(100 * output.progress)} %` : ""}.`;
  }
  await exchange(request, signal, status, result);
}

/** Shows the request as a program in each language, which the server writes: without the key. */
async function showPrograms({ method, address, headers, body }, { type }, signal, result) {
  const isForm = body instanceof FormData;
  const given = isForm ? Object.fromEntries([...body].map(([name, value]) => [name, value instanceof File ? `@${value.name}` : value])) : body;
  const contentType = isForm ? "multipart/form-data" : headers.get("Content-Type") ?? "";
  const call = {
    method: method.toLowerCase(), address: location.origin + address, needs_key: headers.has("Authorization"),
    headers: Object.fromEntries([...headers].filter(([name]) => name !== "authorization" && name !== "content-type")),
    content_type: contentType, body: contentType === "application/json" ? JSON.parse(body) : given,
    saved_as: type.startsWith("audio/") ? `speech.${type.split("/")[1].replace("mpeg", "mp3")}` : "", is_json: type.includes("json"),
  };
  const response = await fetch(LANGUAGES_AT, { method: "POST", body: JSON.stringify(call), signal, credentials: "omit" });
  if (!response.ok) return;
  const programs = Object.entries(await response.json());
  const name = `program-${performance.now()}`;
  result.append(element("details", {}, element("summary", { textContent: "As a program" }), element("div", { className: "example" },
    element("fieldset", {}, element("legend", { className: "visually-hidden", textContent: "Language of the program" }),
      ...programs.map(([language], place) => element("label", {},
        element("input", { type: "radio", name, value: language.toLowerCase(), defaultChecked: place === 0 }), element("span", { textContent: language }))),
      element("button", { className: "copy", type: "button", ariaLabel: "Copy the program" }, element("span", { ariaLive: "polite", textContent: "Copy" }))),
    ...programs.map(([language, text]) => {
      const block = element("pre", {}, element("code", { tabIndex: 0, textContent: text }));
      block.dataset.language = language.toLowerCase();
      return block;
    }))));
}

/** Sends a request and shows its response: {isOk, type, text}, the text of a file being empty. */
async function exchange({ method, address, headers, body }, signal, status, result) {
  const asked = [...headers].map(([name, value]) => `${name}: ${name === "authorization" ? "Bearer sk-…" : value}`);
  result.append(titled("Request", [`${method} ${address}`, ...asked].join("\n")));
  const begun = performance.now();
  const response = await fetch(address, { method, headers, body, signal, credentials: "omit", cache: "no-store" });
  const took = () => `${Math.round(performance.now() - begun)} ms`;
  status.textContent = `${response.status} ${response.statusText} after ${took()}`;
  const told = SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
  result.append(titled("Response", told.join("\n")));
  const type = response.headers.get("content-type") ?? "";
  let text = "";
  if (!/json|text|sdp|event-stream/.test(type)) {
    const blob = await response.blob();
    if (blob.size) result.append(saved(blob, type));
  } else {
    text = await showText(response, /json/.test(type), result);
    result.append(...sounds(text));
  }
  status.textContent += `, complete after ${took()}`;
  return { isOk: response.ok, type, text };
}

/** Shows a text while it comes; JSON is laid out when it is complete. */
async function showText(response, isJson, result) {
  const code = element("code", { tabIndex: 0 });
  result.append(element("pre", {}, code));
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (let shown = 0; shown < MAX_SHOWN_CHARS;) {
    const { value, done } = await reader.read();
    if (done) {
      if (isJson) code.textContent = JSON.stringify(JSON.parse(code.textContent), null, 2);
      return code.textContent;
    }
    const text = decoder.decode(value, { stream: true });
    shown += text.length;
    code.append(text);
  }
  code.append("\n… The rest is not shown.");
  await reader.cancel();
  return code.textContent;
}

/** Players of the recordings of this server that a response names. */
function sounds(text) {
  const named = new Set(text.match(/https?:\/\/[^\s"\\]+/g) ?? []);
  const ours = [...named].filter((address) => URL.canParse(address) && new URL(address).origin === location.origin);
  return ours.filter((address) => SOUND.test(new URL(address).pathname)).map((src) => element("audio", { controls: true, src }));
}

function saved(blob, type) {
  const address = URL.createObjectURL(blob);
  if (type.startsWith("audio/")) return element("audio", { controls: true, src: address });
  return element("p", {}, element("a", { href: address, download: "response", textContent: `Save ${blob.size} bytes, ${type}` }));
}

function titled(title, text) {
  return element("div", {}, element("p", { className: "file", textContent: title }), element("pre", {}, element("code", { tabIndex: 0, textContent: text })));
}

function labelled(words, input) {
  return element("label", {}, element("span", { textContent: words }), input);
}

/** @returns {any} */
function element(name, properties, ...children) {
  const { role, ...rest } = properties;
  const made = Object.assign(document.createElement(name), rest);
  if (role) made.setAttribute("role", role);
  made.append(...children);
  return made;
}
