// Uploads: one key and one body for all attempts, patience where the gateway asks for it.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { Collection, FRAME_MEDIA_TYPE, SpecError, UploadError, post, uploadKey } from "../index.js";

const FRAME = Uint8Array.of(1, 0, 1, 0, 9, 8, 7);

// Serves the given answers one after the other: [status, headers, body], or null to hang up.
async function withGateway(answers, use) {
  const requests = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      requests.push({ headers: request.headers, body: Buffer.concat(chunks), method: request.method });
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      if (answer === null) return request.socket.destroy();
      const [status, headers, body] = answer;
      response.writeHead(status, { ...headers, Connection: "close" });
      return response.end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/v1/collections/modes/reports`;
  try {
    await use(url, requests);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

function sleeper() {
  const slept = [];
  return { slept, sleep: async (ms) => slept.push(ms), random: () => 1 };
}

test("an accepted frame says how many reports", async () => {
  await withGateway([[200, {}, { accepted: 3 }]], async (url, requests) => {
    assert.deepEqual(await post(url, FRAME), { accepted: 3 });
    const [{ headers, body, method }] = requests;
    assert.equal(method, "POST");
    assert.equal(headers["content-type"], FRAME_MEDIA_TYPE);
    assert.match(headers["idempotency-key"], /^[0-9a-f]{32}$/);
    assert.deepEqual([...body], [...FRAME]);
    assert.equal(headers.cookie, undefined);
  });
});

test("repeats have the same key and bytes, and wait as they are told", async () => {
  const answers = [
    [429, { "Retry-After": "7" }, {}],
    [503, {}, {}],
    null,
    [200, {}, "cut off"],
    [200, {}, { accepted: 1 }],
  ];
  await withGateway(answers, async (url, requests) => {
    const { slept, ...patience } = sleeper();
    assert.deepEqual(await post(url, FRAME, { ...patience, baseMs: 100, capMs: 350 }), { accepted: 1 });
    assert.deepEqual(slept, [7000, 200, 350, 350]);
    assert.equal(new Set(requests.map(({ headers }) => headers["idempotency-key"])).size, 1);
    assert.equal(new Set(requests.map(({ body }) => body.toString("hex"))).size, 1);
    assert.equal(requests.length, 5);
  });
});

test("a wait is at most a day", async () => {
  const answers = [[429, { "Retry-After": "9999999999" }, {}], [200, {}, { accepted: 1 }]];
  await withGateway(answers, async (url) => {
    const { slept, ...patience } = sleeper();
    await post(url, FRAME, patience);
    assert.deepEqual(slept, [86_400_000]);
  });
});

for (const status of [400, 404, 409, 413, 415]) {
  test(`status ${status} is final`, async () => {
    const problem = { type: "about:blank", status, title: "no", detail: "expected something else" };
    await withGateway([[status, {}, problem]], async (url, requests) => {
      await assert.rejects(post(url, FRAME, sleeper()), (error) => {
        assert.ok(error instanceof UploadError);
        assert.deepEqual([error.status, error.retriable, error.detail], [status, false, problem.detail]);
        return true;
      });
      assert.equal(requests.length, 1);
    });
  });
}

test("after this many attempts it gives up, and says that the bytes may be sent again", async () => {
  await withGateway([[503, {}, {}]], async (url, requests) => {
    await assert.rejects(post(url, FRAME, { ...sleeper(), attempts: 3 }), { retriable: true });
    assert.equal(requests.length, 3);
  });
});

test("where nothing answers it says where, and why", async () => {
  let gone;
  await withGateway([[200, {}, { accepted: 1 }]], async (url) => {
    gone = url;
  });
  await assert.rejects(post(gone, FRAME, { ...sleeper(), attempts: 2 }), (error) => {
    assert.equal(error.message, `no gateway answered at ${gone}`);
    assert.deepEqual([error.status, error.retriable], [null, true]);
    assert.ok(error.cause instanceof Error);
    return true;
  });
});

test("an upload can be given up", async () => {
  await withGateway([[503, { "Retry-After": "600" }, {}]], async (url) => {
    const controller = new AbortController();
    const upload = post(url, FRAME, { signal: controller.signal });
    setTimeout(() => controller.abort(), 50);
    await assert.rejects(upload, { name: "AbortError" });
  });
});

test("keys are random", () => {
  assert.equal(new Set(Array.from({ length: 100 }, uploadKey)).size, 100);
});

test("a device document that does not come is refused by its address", async () => {
  const answers = [null, [404, {}, {}], [200, {}, "<html>"], [200, {}, {}], [200, {}, "null"]];
  const expected = [/an answer, got none/, /got status 404/, /got no JSON/, /a text of JSON/, /a text/];
  for (const [i, answer] of answers.entries()) {
    await withGateway([answer], async (url) => {
      await assert.rejects(Collection.fetch(url), (error) => {
        assert.ok(error instanceof SpecError);
        assert.match(error.message, expected[i]);
        if (i < 3) assert.ok(error.message.startsWith(`${url}: expected`));
        return true;
      });
    });
  }
});
