/**
 * Cinnabar keeps every rule that the kit tries, in the long form in all three ways, and over TLS as well; and the kit notices when a server
 * does not.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isLong } from '../support/long.ts'
import { type Mutation, startMutatingJson, startMutatingProxy } from './mutating-proxy.ts'
import { always, isResponse, isValue, mid, put, resized, withoutSecondCapabilities } from './mutations.ts'
import { type OwnServer, startOwnServer } from './own-server.ts'
import { describeOutcome, summary } from './report.ts'
import { readScripts, type Script, type Way } from './script.ts'
import { DOCUMENT, refresh } from './table.ts'
import { Run, type TargetOptions } from './target.ts'

const MINUTES = 60_000
/** How long an end that is never going to come is waited for. */
const IMPATIENT_MS = 5_000
const scripts = readScripts(new URL('scripts/', import.meta.url))
let server: OwnServer
beforeAll(async () => {
  server = await startOwnServer()
})
afterAll(() => server.stop())

/** Runs beside each other: a script mostly waits, for what comes and for what must not come. */
const RUNS = 4

/** Plays scripts in several runs with users of their own. */
async function inRuns(
  scripts: readonly Script[],
  name: string,
  play: (run: Run, script: Script) => Promise<void>,
  begin: (users: TargetOptions) => Promise<Run>,
): Promise<void> {
  const left = scripts.values()
  const runs = Array.from({ length: RUNS }, async (_, index) => {
    const run = await begin(await server.certified(`${name}-${index}`))
    for (const script of left) await play(run, script)
  })
  await Promise.all(runs)
}

/** What does not apply where a connection has no TLS: those scripts are played over TCP. */
const NEEDS_TLS = /TLS|tls|certificate/

describe('Cinnabar', () => {
  const ways: readonly (readonly ['tcp' | 'tls' | 'ws' | 'wss', Way])[] = [
    ['tcp', 'tcp'],
    ...(isLong
      ? ([
          ['ws', 'ws-json'],
          ['tls', 'tcp'],
          ['wss', 'ws-json'],
          ['ws', 'ws-xdr'],
          ['wss', 'ws-xdr'],
        ] as const)
      : []),
  ]
  it.concurrent.for(ways)('keeps every rule, %s %s', { timeout: 5 * MINUTES }, async ([scheme, way]) => {
    const applicable = scripts.filter(({ ways }) => ways.includes(way))
    expect(applicable.length).toBeGreaterThan(100)
    const isSecure = scheme === 'tls' || scheme === 'wss'
    // Over TLS the long form tries everything in one way, and in the others what depends on the connection; the short form what is about TLS.
    const sections = isLong ? /^(2|3|11|12|13|14)\// : /^(11|12|14)\//
    const isPart = isSecure && !(isLong && way === 'tcp')
    const tried = isPart ? applicable.filter(({ name }) => sections.test(name)) : applicable
    await inRuns(
      tried,
      `${scheme}-${way}`,
      async (run, script) => {
        const outcome = await run.play(script)
        // Nothing else that a script may need is missing here.
        if (outcome.isMissing && (scheme !== 'tcp' || way !== 'tcp')) expect(outcome.why).toMatch(NEEDS_TLS)
        else expect(outcome.result, describeOutcome(outcome)).toBe('ok')
      },
      (users) => Run.begin(server[scheme], way, users),
    )
  })

  it.concurrent('keeps every rule where frames come in pieces of one byte', { timeout: 5 * MINUTES }, async () => {
    const sections = isLong ? /^(1|2|3|6|12)\// : /^(2|3|12)\//
    const tried = scripts.filter(({ name, ways }) => ways.includes('tcp') && sections.test(name))
    await inRuns(
      tried,
      'pieces',
      async (run, script) => {
        const outcome = await run.play(script)
        expect(outcome.result, describeOutcome(outcome)).toBe('ok')
      },
      (users) => Run.begin(server.tcp, 'tcp', { ...users, byteByByte: true }),
    )
  })
})

describe('the verdict', () => {
  it('says what was not tried, and why', async () => {
    // A producer that has neither layers nor tokens nor certificates, and calls nobody.
    const { user, other } = await server.users('verdict')
    const run = await Run.begin(server.ws, 'ws-json', { user, other, dial: { host: '127.0.0.2', port: 0 } })
    const outcomes = []
    for (const script of scripts.filter(({ name }) => /^12\/|^14\/(call|values)$|^11\/(token|password)$/.test(name))) {
      outcomes.push(await run.play(script))
    }
    const verdict = summary(outcomes, false).split('\n')
    expect(verdict[0]).toMatch(/^\d+ ok, 0 failed, \d+ not applicable$/)
    expect(verdict[1]).toMatch(
      /^not tried: 14 \(needs to be called, but the producer may not dial ws:\/\/127\.0\.0\.2:\d+ \(--dial\)\)$/,
    )
    expect(verdict[2]).toContain('11 (11/token: needs a token (--token-file), and the method on offer)')
    expect(verdict[2]).toContain('12/tls-once')
    expect(verdict[2]).toContain(': layer tls is not advertised')
    expect(verdict[2]).toMatch(/12\/deflate-values[^:]*: only tcp, ws-xdr/)
    // Nor is a producer blamed for a certificate that the kit was not told to trust.
    const unknown = await Run.begin(server.tcp, 'tcp', { user })
    const outcome = await unknown.play(scripts.find(({ name }) => name === '12/tls') as Script)
    expect(outcome.why).toBe('no TLS: self-signed certificate in certificate chain (--ca)')
    expect(summary(outcomes, true)).toContain('15 (there are no scripts)')
  })
})

describe('docs/conformance.md', () => {
  it('lists every script under its clauses', () => {
    const text = readFileSync(DOCUMENT, 'utf8')
    expect(text, 'run npx tsx test/conformance/table.ts').toBe(refresh(text, scripts))
  })
})

/** What the wrong server does, the script that has to notice, and words of the step at which it does. */
const mutations: readonly (readonly [string, Mutation, string, string])[] = [
  ['nothing wrong', always((frame) => frame), '6/10-execute', ''],
  [
    'another status',
    always((frame) => (isResponse(frame) && frame.readUInt32BE(12) === 8 ? put(frame, 12, 7) : frame)),
    '6/08-get-of-a-dead-id',
    'NO_SUCH_ID',
  ],
  [
    'another seq',
    always((frame) => (isResponse(frame) ? put(frame, 8, (frame.readUInt32BE(8) ^ 1) >>> 0) : frame)),
    '2/seq-comes-back',
    'login A',
  ],
  [
    'a result where there is none',
    always((frame) => (isResponse(frame) && frame.readUInt32BE(8) === 0 ? put(frame, 16, 1) : frame)),
    '2/seq-comes-back',
    'RESPONSE 00000000 OK',
  ],
  [
    'no detail',
    always((frame) => (isResponse(frame) && frame.readUInt32BE(12) > 1 ? resized(frame.subarray(0, 20)) : frame)),
    '3/detail-only-with-a-refusal',
    'NO_SUCH_ID',
  ],
  [
    'a detail to OK',
    always((frame) =>
      isResponse(frame) && frame.readUInt32BE(8) === 1 ? resized(Buffer.concat([frame, Buffer.alloc(4)])) : frame,
    ),
    '3/detail-only-with-a-refusal',
    'RESPONSE 00000001 OK',
  ],
  [
    'padding that is not zero',
    always((frame) =>
      isResponse(frame) && frame.readUInt32BE(12) === 8 ? put(frame, frame.length - 4, 0x61616101) : frame,
    ),
    '6/08-get-of-a-dead-id',
    'NO_SUCH_ID',
  ],
  [
    'a length that is no multiple of 4',
    always((frame) => (isResponse(frame) ? put(frame, 0, frame.length - 5) : frame)),
    '2/seq-comes-back',
    'login A',
  ],
  [
    'another version',
    always((frame) => (mid(frame) === 0xfffffffe ? put(frame, 8, 2) : frame)),
    '3/capabilities-come-first',
    'PRODUCER_CAPS',
  ],
  ['no capabilities after AUTH', withoutSecondCapabilities(), '3/capabilities-come-first', 'login B'],
  ['a value before its response', swapsSeqTwo(), '6/01-response-before-its-value', 'RESPONSE 00000002 OK'],
  ['values twice', always((frame) => (isValue(frame) ? [frame, frame] : [frame])), '6/10-execute', 'silence A'],
  [
    'values of another id',
    always((frame) => (isValue(frame) ? put(frame, 4, mid(frame) ^ 1) : frame)),
    '6/10-execute',
    '{r}',
  ],
  ['values of another type', always((frame) => (isValue(frame) ? put(frame, 24, 11) : frame)), '6/10-execute', 'REC'],
  [
    'one transaction id for all',
    always((frame) => (isValue(frame) ? put(frame, 12, 7) : frame)),
    '5/transactions-ascend',
    '{t2:u64>t1}',
  ],
  ['new transaction ids for repeats', renumbersRepeats(), '8/01-again-after-a-broken-connection', 'B< LEN {r1} {t1}'],
  [
    'answers with a transaction id',
    always((frame) => (isValue(frame) ? put(frame, 12, 7) : frame)),
    '6/11-query',
    '{q} {zero}',
  ],
  [
    'GAPs of another reason',
    always((frame) => (mid(frame) === 0xfffffffc ? put(frame, 44, 1) : frame)),
    '3/gap',
    'any order',
  ],
  [
    'another NOTICE',
    always((frame) => (mid(frame) === 0xfffffffb ? put(frame, 8, 3) : frame)),
    '6/09-set-channel',
    'closed A',
  ],
  [
    'metric ids out of range',
    always((frame) => (isResponse(frame) && frame.readUInt32BE(16) > 0 ? put(frame, 16, 0x80000001) : frame)),
    '5/ids-are-new',
    'login A',
  ],
  ['details that tell what is somebody else’s', tellsApart(), '4/not-yours-is-not-there-metric', '{d}'],
  ['a value on its way where another binding comes', repeatsLast('before'), '8/02-later-binding-replaces', ''],
  ['a value that does not wait', repeatsLast('after'), '8/02-later-binding-replaces', 'queued 1 or more'],
  [
    'another ledger',
    always((frame) => (frame.includes('in_flight') ? put(frame, frame.indexOf('in_flight') + 20, 9) : frame)),
    '8/08-ledger',
    'in_flight',
  ],
]

describe('the kit', () => {
  it.concurrent.for(mutations)('notices: %s', { timeout: MINUTES }, async ([what, mutation, name, step]) => {
    const proxy = await startMutatingProxy(server.tcp, mutation)
    const users = await server.users(what.replaceAll(/\W/g, '-'))
    const outcome = await playOne(proxy.address, users, name)
    await proxy.close()
    expect(outcome.result, describeOutcome(outcome)).toBe(step === '' ? 'ok' : 'failed')
    const { failure } = outcome
    expect(`${failure?.step?.text} ${failure?.expected.map(({ text }) => text).join(' ')}`).toContain(step)
  })

  it.concurrent('notices: a connection that stays open', { timeout: MINUTES }, async () => {
    const proxy = await startMutatingProxy(
      server.tcp,
      always((frame) => frame),
      { keepsOpen: true },
    )
    const users = { ...(await server.users('open')), patienceMs: IMPATIENT_MS }
    const outcome = await playOne(proxy.address, users, '6/09-del-channel-closes')
    await proxy.close()
    expect(outcome.failure).toMatchObject({ step: { is: 'closed' }, came: { nothing: IMPATIENT_MS } })
  })
})

/** The same for JSON: what is said, and instead of what; the script; words of the step. */
const saidWrongly: readonly (readonly [string, string, string, string])[] = [
  ['"status":"NO_SUCH_ID"', '"status":8', '6/08-get-of-a-dead-id', 'NO_SUCH_ID'],
  ['"detail":', '"reason":', '6/08-get-of-a-dead-id', 'NO_SUCH_ID'],
  ['"type":"value"', '"more":1,"type":"value"', '6/10-execute', '{r}'],
  ['"valueType":"rec"', '"valueType":"REC"', '6/10-execute', '{r}'],
  ['"outcome":"ok"', '"outcome":"done"', '6/10-execute', 'outcome'],
  ['"value":null', '"value":"void"', '13/result-of-a-control', '"value":null'],
  ['"reason":"purged"', '"reason":4', '3/gap', 'any order'],
  ['"max_frame":1048576', '"max_frame":65536', '3/max-frame', '1048576'],
]

describe('the kit, of JSON,', () => {
  it.concurrent.for(saidWrongly)('notices %s as %s', { timeout: MINUTES }, async ([right, wrong, name, step]) => {
    const proxy = await startMutatingJson(server.ws, (text) => text.replace(right, wrong))
    const outcome = await playOne(
      proxy.address,
      await server.users(`json${saidWrongly.findIndex((row) => row[1] === wrong)}`),
      name,
      'ws-json',
    )
    await proxy.close()
    const { failure, result } = outcome
    expect(result, describeOutcome(outcome)).toBe('failed')
    expect(`${failure?.step?.text} ${failure?.expected.map(({ text }) => text).join(' ')}`).toContain(step)
  })

  it.concurrent('notices another close code', { timeout: MINUTES }, async () => {
    const proxy = await startMutatingJson(
      server.ws,
      (text) => text,
      () => 1000,
    )
    const outcome = await playOne(proxy.address, await server.users('code'), '13/text-that-is-no-json', 'ws-json')
    await proxy.close()
    expect(outcome.failure?.message).toBe('closed with 1000, not 1007')
  })
})

async function playOne(
  address: string,
  users: Awaited<ReturnType<OwnServer['users']>>,
  name: string,
  way: Way = 'tcp',
) {
  const script = scripts.find((one) => one.name === name) as Script
  // Its metrics are asked for before the mutation could be noticed: a script that needs some is played as if it had them.
  return (await Run.begin(address, way, users)).play({ ...script, needs: [] })
}

/** A value more, before or after the response with seq 3. */
function repeatsLast(where: 'before' | 'after'): Mutation {
  return () => {
    let last: Buffer | undefined
    return (frame) => {
      if (isValue(frame)) last = Buffer.from(frame)
      if (!isResponse(frame) || frame.readUInt32BE(8) !== 3 || last === undefined) return [frame]
      last.writeBigUInt64BE(last.readBigUInt64BE(8) + 1n, 8)
      return where === 'before' ? [last, frame] : [frame, last]
    }
  }
}

function swapsSeqTwo(): Mutation {
  return () => {
    let held: Buffer | undefined
    return (frame) => {
      if (isResponse(frame) && frame.readUInt32BE(8) === 2) {
        held = frame
        return []
      }
      const both = held === undefined ? [frame] : [frame, held]
      held = undefined
      return both
    }
  }
}

function renumbersRepeats(): Mutation {
  const seen = new Set<bigint>()
  return always((frame) => {
    if (!isValue(frame)) return frame
    const transaction = frame.readBigUInt64BE(8)
    if (transaction > 0n && seen.has(transaction)) frame.writeBigUInt64BE(transaction + 1000n, 8)
    seen.add(transaction)
    return frame
  })
}

function tellsApart(): Mutation {
  return () => {
    let refusals = 0
    return (frame) => {
      if (!isResponse(frame) || frame.readUInt32BE(12) < 2 || ++refusals < 2) return [frame]
      frame[24] = 0x4e
      return [frame]
    }
  }
}
