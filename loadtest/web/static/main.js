// The page: events of the lab go to the rows and the result, input goes to the lab.
import { listen } from "./events.js";
import { wireForm, showRunning } from "./form.js";
import { showRows, preview } from "./rows.js";
import { showResult } from "./result.js";
import { wireViews } from "./views.js";
import { wirePlay } from "./play.js";

if (document.getElementById("steps")) {
  wireViews();
  wirePlay();
}
wireForm(preview);
preview();
listen((state) => {
  showRunning(state.phase === "running");
  showRows(state);
  showResult(state);
});
