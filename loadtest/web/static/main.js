// The page: events of the lab go to the rows and the result, input goes to the lab.
import { listen } from "./events.js";
import { free } from "./post.js";
import { openRace, showRunning, wireForm } from "./form.js";
import { showRows, preview } from "./rows.js";
import { showResult } from "./result.js";
import { addView, wireViews } from "./views.js";
import { wireLanguage } from "./text.js";

wireLanguage();
let onBusy = (/** @type {boolean} */ _) => {};
if (document.getElementById("game")) {
  const { openGame, wireGame } = await import("./game.js");
  const { openLesson, wireLessons } = await import("./lessons.js");
  addView("lesson", openLesson);
  addView("game", openGame);
  const { openFailover, showBusy, wireFailover } = await import("./failover.js");
  addView("failover", openFailover);
  onBusy = showBusy;
  wireLessons();
  wireGame();
  wireFailover();
}
addView("race", openRace);
wireForm(preview);
wireViews();
preview();
listen((/** @type {State} */ state) => {
  if (!state.busy) free();
  showRunning(state.phase === "running", state.busy);
  onBusy(state.busy);
  showRows(state);
  showResult(state);
});
