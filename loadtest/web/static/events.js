// Server-sent events. Each is the whole state, so that nothing is lost with a
// connection.
import { language, t } from "./text.js";

const pause = 2000; // ms between tries

export function listen(onState) {
  const banner = document.getElementById("lost");
  let tries = 0;

  const connect = () => {
    const source = new EventSource(`/events?lang=${language}`);
    source.onmessage = (event) => {
      tries = 0;
      banner.hidden = true;
      onState(JSON.parse(event.data));
    };
    source.onerror = () => {
      source.close(); // the browser's own tries are not counted
      lost(++tries);
      setTimeout(connect, pause);
    };
  };

  const lost = (n) => {
    const [text, count] = banner.children;
    if (banner.hidden) {
      banner.hidden = false;
      text.textContent = t("The lab does not answer. Has it stopped? What you see may be out of date. This page tries again by itself.");
    }
    count.textContent = n === 1 ? t("Tried once.") : t("Tried {n} times.", { n });
  };

  connect();
}
