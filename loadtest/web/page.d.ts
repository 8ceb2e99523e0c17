// What the scripts of the page get from the lab, and use of what it shows, for the check of types (.ci/page). What each field
// means stands at the Go type of the same name.

type Lesson = (typeof import("../step/lessons.json"))[number] & { missing?: string };
type Recording = { mistake: Position[]; remedy: Position[] };

interface Position {
  schedule: string; acts: string[]; strategy: string; designed: boolean; lock_name: string; units: number;
  buyers: Buyer[]; lines: string[] | null; next: string[];
  stock: { available: number; reserved: number; fence: string };
  lock?: { owner: string; holders: string[]; ttl_ms: number };
  sold: number; events: PlayedEvent[]; wrong: number; saved: number;
  over: boolean; passed: boolean; outcome: string; why: string; remedy: string;
}
interface Buyer {
  name: string; instance?: number; state: string; next: string; line?: string;
  holds?: boolean; mistaken?: boolean; read?: number; answer?: string;
}
interface PlayedEvent {
  at_ns: number; actor: string; act: number; kind: string; text: string; answer?: string; noise?: boolean; line?: string;
}

interface Exploring { waiting?: boolean; played?: number; todo?: number; found?: Explored; problem?: string }
interface Explored { strategy: string; designed: boolean; schedules: string[]; failed: string[]; oversold: number; undersold: number }

interface State { run: number; phase: string; choice: Choice; races: Race[]; status: string; result: boolean; busy: boolean }
interface Choice { strategies: string[]; buyers: number; stock: number; instances: number; think_ms: number; together: boolean }
interface Race {
  name: string; phase: string; connected?: number; orders: number; refused?: number; errors?: number;
  available?: number; failure?: string;
}

interface Problem { text: string; field?: string; passing?: boolean }

interface Answers {
  "/lessons": Lesson[]; "/lesson": Recording; "/schedule": Position;
  "/run": null; "/stop": null; "/failover": { html: string };
}

// Elements that the page looks up are its own, and the tests open it: each may have what any of them has.
type Found = HTMLInputElement & Pick<HTMLSelectElement, "options" | "selectedIndex"> & Pick<HTMLAnchorElement, "href">
  & Pick<HTMLTemplateElement, "content"> & Pick<HTMLDetailsElement, "open"> & Pick<SVGSVGElement, "viewBox">
  & Pick<HTMLFormElement, "elements">;
interface Document { getElementById(id: string): Found }
interface ParentNode { querySelector(selectors: string): Found; querySelectorAll(selectors: string): NodeListOf<Found> }
interface Element { closest(selectors: string): Found }
interface EventTarget extends Pick<HTMLElement, "closest" | "matches" | "blur"> {}
interface HTMLFormControlsCollection { [name: string]: any }
