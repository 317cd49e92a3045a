"use strict";
// Theme, and timelines on canvas that zoom and move together. No library; times are milliseconds, lengths CSS pixels.
(() => {
	const root = document.documentElement;
	const watchers = [];
	document.getElementById("theme").onclick = () => {
		const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
		root.dataset.theme = dark ? "light" : "dark";
		watchers.forEach((f) => f());
	};
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => watchers.forEach((f) => f()));

	const source = document.getElementById("data");
	if (!source) return;
	const data = JSON.parse(source.textContent);
	const F = data.fields;
	const [JOB, QUEUE, FROM, TO, ROW, ROWS, START, END, USEFUL, OVERHEAD, OUTCOME, EXCESS] = Array(F).keys();
	const byId = (id) => document.getElementById(id);
	const LABEL = 132, AXIS = 22, DEPTH = 54, MOST = 460;

	// Hues are Okabe and Ito's, with shades between; white and black text can both be read on them.
	const hues = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C7A3D", "#7A6FC2", "#4F8F8B", "#B5651D"];
	const good = new Set([1, 2, 6]); // done, yielded, stopped: what was planned
	const hueOf = {
		job: (s, i) => hues[s[i + JOB] % hues.length],
		queue: (s, i) => hues[s[i + QUEUE] % hues.length],
		outcome: (s, i) => (s[i + OUTCOME] === 0 ? "#8A8A8A" : good.has(s[i + OUTCOME]) ? "#0072B2" : "#D55E00"),
	};

	// prepare sorts the runs of each row by start, and adds up the depths of all queues.
	function prepare(t) {
		if (t.byRow) return t;
		t.byRow = t.rows.map(() => []);
		for (let i = 0; i < t.spans.length; i += F) {
			for (let k = 0; k < t.spans[i + ROWS]; k++) t.byRow[t.spans[i + ROW] + k].push(i);
		}
		for (const list of t.byRow) list.sort((a, b) => t.spans[a + START] - t.spans[b + START]);
		const now = t.queues.map(() => 0);
		let sum = 0;
		t.depth = [];
		t.deepest = 1;
		for (let i = 0; i < t.depths.length; i += 3) {
			sum += t.depths[i + 2] - now[t.depths[i + 1]];
			now[t.depths[i + 1]] = t.depths[i + 2];
			t.depth.push([t.depths[i], sum]);
			t.deepest = Math.max(t.deepest, sum);
		}
		return t;
	}

	// firstAfter is the index of the first of n elements for which at(i) > v, where at rises.
	function firstAfter(n, at, v) {
		let low = 0, high = n;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (at(mid) > v) high = mid; else low = mid + 1;
		}
		return low;
	}

	function elapsed(ms) {
		const s = Math.abs(ms) / 1000, p = (v, n = 2) => String(Math.floor(v)).padStart(n, "0");
		if (s < 60) return (ms / 1000).toFixed(s < 10 && s % 1 ? 2 : s % 1 ? 1 : 0) + " s";
		if (s < 3600) return Math.floor(s / 60) + ":" + p(s % 60) + " min";
		if (s < 86400) return Math.floor(s / 3600) + ":" + p((s % 3600) / 60) + ":" + p(s % 60);
		return Math.floor(s / 86400) + " d " + p((s % 86400) / 3600) + ":" + p((s % 3600) / 60);
	}

	function tickStep(length, most) {
		const steps = { 1: [1, 2, 5, 10, 20, 50, 100, 200, 500], 1e3: [1, 2, 5, 10, 15, 30], 6e4: [1, 2, 5, 10, 15, 30], 36e5: [1, 2, 3, 6, 12], 864e5: [1, 2, 5, 10, 20, 50, 100, 1000] };
		for (const [unit, list] of Object.entries(steps)) for (const k of list) if (length / (k * unit) <= most) return k * unit;
		return length;
	}

	const view = { from: 0, to: 1, most: 1, job: null };
	const panes = [];

	class Pane {
		constructor(parent) {
			this.box = parent.appendChild(document.createElement("div"));
			this.box.className = "timeline";
			this.canvas = this.box.appendChild(document.createElement("canvas"));
			this.canvas.tabIndex = 0;
			this.note = this.box.appendChild(document.createElement("div"));
			this.note.className = "note";
			this.t = null;
			this.top = 0; // pixels of rows that are scrolled away
			this.listen();
		}

		show(t) {
			this.t = t && prepare(t);
			this.box.hidden = !t;
			this.top = 0;
			if (!t) return;
			this.canvas.setAttribute("aria-label", t.title);
			this.row = Math.max(3, Math.min(24, Math.floor(MOST / t.rows.length)));
			this.note.textContent = t.title + ": " + t.spans.length / F + " runs on " + t.rows.length + " slices" + (t.dropped ? "; " + t.dropped + " later runs were not recorded" : "");
		}

		get rowsHeight() { return Math.min(MOST, this.row * this.t.rows.length); }
		get plotWidth() { return this.width - LABEL; }
		x(ms) { return LABEL + ((ms - view.from) / (view.to - view.from)) * this.plotWidth; }
		ms(x) { return view.from + ((x - LABEL) / this.plotWidth) * (view.to - view.from); }

		draw() {
			if (!this.t) return;
			const ratio = devicePixelRatio || 1, height = this.rowsHeight + DEPTH + AXIS;
			this.width = this.box.clientWidth;
			this.canvas.style.height = height + "px";
			this.canvas.width = Math.round(this.width * ratio);
			this.canvas.height = Math.round(height * ratio);
			const css = getComputedStyle(root), color = (name) => css.getPropertyValue("--" + name).trim();
			const c = this.canvas.getContext("2d");
			c.setTransform(ratio, 0, 0, ratio, 0, 0);
			c.font = "11px system-ui, sans-serif";
			c.textBaseline = "middle";
			c.fillStyle = color("paper");
			c.fillRect(0, 0, this.width, height);
			this.ticks(c, color, height);
			c.save();
			c.beginPath();
			c.rect(0, 0, this.width, this.rowsHeight);
			c.clip();
			const last = Math.min(this.t.rows.length, Math.ceil((this.top + this.rowsHeight) / this.row));
			for (let r = Math.floor(this.top / this.row); r < last; r++) this.drawRow(c, color, r);
			c.restore();
			this.drawDepth(c, color);
		}

		ticks(c, color, height) {
			const step = tickStep(view.to - view.from, this.plotWidth / 90);
			c.textAlign = "center";
			for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
				const x = Math.round(this.x(t)) + 0.5;
				c.fillStyle = color("line");
				c.fillRect(x, 0, 1, height - AXIS + 3);
				c.fillStyle = color("faint");
				c.fillText(elapsed(t), Math.min(Math.max(x, LABEL + 16), this.width - 26), height - AXIS / 2);
			}
		}

		drawRow(c, color, r) {
			const { spans, byRow, rows } = this.t, y = r * this.row - this.top, list = byRow[r];
			const gap = this.row > 8 ? 2 : this.row > 4 ? 1 : 0, h = this.row - gap;
			if (this.row >= 11) {
				c.fillStyle = color("faint");
				c.textAlign = "right";
				c.fillText(rows[r], LABEL - 6, y + this.row / 2, LABEL - 10);
			}
			c.fillStyle = color("soft");
			c.fillRect(LABEL, y, this.plotWidth, h);
			const hue = hueOf[byId("hue").value];
			// Runs of a row do not overlap, so that their ends rise too.
			let k = firstAfter(list.length, (i) => spans[list[i] + END], view.from), drawn = -1;
			for (; k < list.length; k++) {
				const i = list[k];
				if (spans[i + START] >= view.to) break;
				const x1 = Math.max(this.x(spans[i + START]), LABEL), x2 = Math.min(this.x(spans[i + END]), this.width);
				if (x2 - x1 < 1.5) {
					if (Math.floor(x1) === drawn) continue; // another run has this pixel
					drawn = Math.floor(x1);
					c.fillStyle = hue(spans, i);
					c.fillRect(drawn, y, 1.5, h);
				} else {
					this.drawSpan(c, color, i, x1, x2, y, h, hue(spans, i));
				}
				if (view.job === spans[i + JOB]) {
					c.strokeStyle = color("ink");
					c.lineWidth = 2;
					c.strokeRect(x1 + 1, y + 1, Math.max(x2 - x1 - 2, 1), Math.max(h - 2, 1));
				}
			}
		}

		drawSpan(c, color, i, x1, x2, y, h, hue) {
			const s = this.t.spans, length = Math.max(s[i + END] - s[i + START], 1);
			// The parts are laid out over the whole run and cut to what is seen.
			const at = (ms) => Math.min(Math.max(this.x(s[i + START] + ms), x1), x2);
			const a = at(s[i + OVERHEAD]), b = at(s[i + OVERHEAD] + s[i + USEFUL]);
			c.fillStyle = hue;
			c.globalAlpha = 0.4;
			c.fillRect(x1, y, x2 - x1, h);
			c.globalAlpha = 1;
			c.fillRect(a, y, b - a, h);
			const lost = length - s[i + OVERHEAD] - s[i + USEFUL];
			if (lost > 0 && s[i + OUTCOME] !== 0 && x2 - b > 2) this.hatch(c, color("bad"), b, x2, y, h);
			if (s[i + EXCESS] && h > 5 && x2 - x1 > 12) {
				c.fillStyle = color("bad");
				c.beginPath();
				c.moveTo(x2, y);
				c.lineTo(x2 - 8, y);
				c.lineTo(x2, y + 8);
				c.fill();
			}
			c.fillStyle = color("paper");
			c.fillRect(x2 - 0.5, y, 0.5, h);
			if (h >= 11 && x2 - x1 > 40) {
				const range = s[i + TO] > s[i + FROM] ? " [" + s[i + FROM] + "," + s[i + TO] + ")" : "";
				const whole = s[i + JOB] + range, text = c.measureText(whole).width < x2 - x1 - 8 ? whole : String(s[i + JOB]);
				if (c.measureText(text).width < x2 - x1 - 8) {
					c.textAlign = "center";
					c.lineWidth = 2.5;
					c.strokeStyle = "rgba(0,0,0,.55)";
					c.strokeText(text, (x1 + x2) / 2, y + h / 2 + 0.5);
					c.fillStyle = "#fff";
					c.fillText(text, (x1 + x2) / 2, y + h / 2 + 0.5);
				}
			}
		}

		hatch(c, stroke, x1, x2, y, h) {
			c.save();
			c.beginPath();
			c.rect(x1, y, x2 - x1, h);
			c.clip();
			c.strokeStyle = stroke;
			c.lineWidth = 1.2;
			c.beginPath();
			for (let x = x1 - h; x < x2; x += 5) {
				c.moveTo(x, y + h);
				c.lineTo(x + h, y);
			}
			c.stroke();
			c.restore();
		}

		drawDepth(c, color) {
			const { depth, deepest } = this.t, base = this.rowsHeight + DEPTH, y = (n) => base - (n / deepest) * (DEPTH - 12);
			c.fillStyle = color("faint");
			c.textAlign = "right";
			c.fillText("waiting, most " + deepest, LABEL - 6, base - DEPTH / 2 + 4, LABEL - 10);
			// The highest of each pixel is drawn.
			const peak = new Float64Array(Math.ceil(this.plotWidth) + 1);
			for (let k = Math.max(firstAfter(depth.length, (i) => depth[i][0], view.from) - 1, 0); k < depth.length && depth[k][0] < view.to; k++) {
				const end = k + 1 < depth.length ? depth[k + 1][0] : this.t.length;
				const to = Math.min(Math.floor(this.x(end) - LABEL), peak.length - 1);
				for (let p = Math.max(Math.floor(this.x(depth[k][0]) - LABEL), 0); p <= to; p++) peak[p] = Math.max(peak[p], depth[k][1]);
			}
			peak.forEach((n, p) => n && c.fillRect(LABEL + p, y(n), 1, base - y(n)));
		}

		// find the run at a place of the canvas.
		find(x, y) {
			if (x < LABEL || y > this.rowsHeight) return -1;
			const list = this.t.byRow[Math.floor((y + this.top) / this.row)], s = this.t.spans, ms = this.ms(x);
			if (!list) return -1;
			const k = firstAfter(list.length, (i) => s[list[i] + END], ms);
			const near = [k, k - 1].filter((n) => n >= 0 && n < list.length).map((n) => list[n]);
			const slack = (view.to - view.from) / this.plotWidth * 2;
			return near.find((i) => s[i + START] - slack <= ms && ms <= s[i + END] + slack) ?? -1;
		}

		hint(i, event) {
			const s = this.t.spans, box = byId("hint");
			box.hidden = i < 0;
			const job = i < 0 ? null : s[i + JOB];
			if (job !== view.job) {
				view.job = job;
				redraw();
			}
			if (i < 0) return;
			const length = s[i + END] - s[i + START], lost = Math.max(length - s[i + USEFUL] - s[i + OVERHEAD], 0);
			box.textContent = [
				"job " + s[i + JOB] + (s[i + TO] > s[i + FROM] ? ", units [" + s[i + FROM] + ", " + s[i + TO] + ")" : "") + ", queue " + this.t.queues[s[i + QUEUE]],
				this.t.rows[s[i + ROW]] + (s[i + ROWS] > 1 ? " and " + (s[i + ROWS] - 1) + " more" : ""),
				elapsed(s[i + START]) + " to " + elapsed(s[i + END]) + " (" + elapsed(length) + ")",
				s[i + OUTCOME] ? "counted " + elapsed(s[i + USEFUL]) + ", overhead " + elapsed(s[i + OVERHEAD]) + ", lost " + elapsed(lost) : "cut off: it still ran",
				(s[i + OUTCOME] ? data.outcomes[s[i + OUTCOME]] : "") + (s[i + EXCESS] ? ", its peak passed the slice's memory" : ""),
			].filter(Boolean).join("\n");
			box.style.left = Math.min(event.pageX + 14, scrollX + innerWidth - box.offsetWidth - 8) + "px";
			box.style.top = event.pageY + 16 + "px";
		}

		scroll(by) {
			this.top = Math.max(0, Math.min(this.top + by, this.row * this.t.rows.length - this.rowsHeight));
		}

		listen() {
			let held = null;
			const c = this.canvas;
			c.addEventListener("wheel", (e) => {
				e.preventDefault();
				if (e.shiftKey) this.scroll(e.deltaY || e.deltaX);
				else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) move(e.deltaX / this.plotWidth);
				else zoom(Math.exp(e.deltaY * 0.0015), this.ms(Math.max(e.offsetX, LABEL)));
				redraw();
			}, { passive: false });
			c.addEventListener("pointerdown", (e) => { held = e; c.setPointerCapture(e.pointerId); });
			c.addEventListener("pointerup", () => { held = null; });
			c.addEventListener("pointermove", (e) => {
				if (!held) return this.hint(this.find(e.offsetX, e.offsetY), e);
				move((held.offsetX - e.offsetX) / this.plotWidth);
				this.scroll(held.offsetY - e.offsetY);
				held = e;
				redraw();
			});
			c.addEventListener("pointerleave", (e) => { if (!held) this.hint(-1, e); });
			c.addEventListener("dblclick", all);
			c.addEventListener("keydown", (e) => {
				const mid = (view.from + view.to) / 2;
				const act = { "+": () => zoom(0.7, mid), "=": () => zoom(0.7, mid), "-": () => zoom(1.4, mid), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
					ArrowUp: () => this.scroll(-3 * this.row), ArrowDown: () => this.scroll(3 * this.row), 0: all }[e.key];
				if (!act) return;
				e.preventDefault();
				act();
				redraw();
			});
		}
	}

	// zoom keeps a moment where it is; both stay within what there is.
	function zoom(by, at) {
		const length = Math.min(Math.max((view.to - view.from) * by, 10), view.most);
		view.from = at - (at - view.from) * (length / (view.to - view.from));
		view.to = view.from + length;
		move(0);
	}
	function move(by) {
		const length = view.to - view.from;
		view.from = Math.max(0, Math.min(view.from + by * length, view.most - length));
		view.to = view.from + length;
	}
	function all() {
		view.from = 0;
		view.to = view.most;
		redraw();
	}
	let due = false;
	function redraw() {
		if (due) return;
		due = true;
		requestAnimationFrame(() => { due = false; panes.forEach((p) => p.draw()); });
	}

	const first = byId("first"), second = byId("second");
	second.add(new Option("none", -1));
	data.timelines.forEach((t, i) => { first.add(new Option(t.title, i)); second.add(new Option(t.title, i)); });
	second.value = data.timelines.length > 1 ? 1 : -1;
	panes.push(new Pane(byId("timelines")), new Pane(byId("timelines")));
	function choose() {
		panes[0].show(data.timelines[first.value]);
		panes[1].show(data.timelines[second.value]);
		view.most = Math.max(1, ...panes.map((p) => (p.t ? p.t.length : 1))) * 1.01;
		all();
	}
	first.onchange = second.onchange = choose;
	byId("hue").onchange = redraw;
	byId("in").onclick = () => { zoom(0.6, (view.from + view.to) / 2); redraw(); };
	byId("out").onclick = () => { zoom(1.7, (view.from + view.to) / 2); redraw(); };
	byId("all").onclick = all;
	new ResizeObserver(redraw).observe(byId("timelines"));
	watchers.push(redraw);
	choose();
})();
