// What the buttons and switches in the results do. Gradio runs this once for the element that holds the results.
const show = (input) => {
  const card = input.closest(".rh-card");
  card.querySelectorAll(".rh-veil").forEach((veil) => { veil.hidden = veil.dataset.stage !== input.value; });
  card.querySelector(".rh-tokens b").textContent = input.dataset.tokens;
  card.querySelector(".rh-bar > span").style.width = `${(100 * input.dataset.tokens) / card.dataset.total}%`;
};

const showAll = (all) => {
  element.querySelectorAll(`input[data-tokens][value="${all.value}"]`).forEach((other) => {
    other.checked = true;
    show(other);
  });
};

element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.pick) trigger("pick", { id: button.dataset.pick });
  if (button?.dataset.example) trigger("example", { text: button.dataset.example });
});

element.addEventListener("change", (event) => {
  const input = event.target;
  if ("tokens" in input.dataset) show(input);
  if ("tokensAll" in input.dataset) {
    layer = input.dataset.tokensAll;
    showAll(input);
  }
  renewed.takeRecords();
});

// New results show the layer that was chosen before, if they have it. Gradio puts them into the elements of the former
// ones, whose choices would stay without their effects.
let layer = "";
const renewed = new MutationObserver(() => {
  const line = (chosen) => element.querySelector(`input[data-tokens-all="${chosen}"]`);
  const all = line(layer) ?? line("");
  if (!all) return;
  all.checked = true;
  showAll(all);
  renewed.takeRecords(); // what this changed itself
});
renewed.observe(element, { childList: true, subtree: true, attributeFilter: ["data-tokens", "hidden", "src"] });

// The same picture in the other order.
const mark = (event, on) => {
  const id = event.target.closest?.(".rh-card")?.dataset.document;
  element.querySelectorAll(".rh-card").forEach((card) => card.classList.toggle("rh-twin", on && card.dataset.document === id));
};
element.addEventListener("pointerover", (event) => mark(event, true));
element.addEventListener("pointerout", (event) => mark(event, false));
element.addEventListener("focusin", (event) => mark(event, true));
element.addEventListener("focusout", (event) => mark(event, false));
