/**
 * Rig: SIGKILL of a server that delivers by a drain, and of the Prometheus to which it delivers. Every value that the server
 * has said yes to is at the destination in the end, with its time in milliseconds. What VictoriaMetrics loses of what it has
 * answered 2xx when it is killed itself is counted apart, and so is what vmagent loses in the place of the server.
 */
import { spawnSync } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { missingAtLast, until } from '../rig/patience.ts'
import { StackProgram, tokenOfPublisher, WRITE } from '../rig/prometheus-stack.ts'
import { FED, type FeedProtocol, PromisedFeed } from '../rig/promised-feed.ts'
import { type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { ServerProcess } from '../support/server-process.ts'

const FIRST_LIFE_MS = 150
const MORE_LIFE_MS = 600
/** Between two requests: some thousand values a second. */
const PAUSE_MS = 5
/** Looks without anything new after which others have lost what is missing; ours may take two minutes. */
const LOOKS_AT_OTHERS = 100
/** How old the first value is. */
const AGE_MS = 60_000

/** By which name values of each protocol are in our server, and at the destination of its drain. */
const NAMES: Readonly<Record<FeedProtocol, { readonly family: string; readonly shown: string }>> = {
  'remote-write': { family: 'prometheus.*', shown: FED },
  otlp: { family: 'otlp.*', shown: `otlp_${FED}` },
}

/** Who is killed while values go to whom. */
interface Scene {
  readonly name: string
  readonly destination: 'prometheus' | 'victoria-metrics'
  readonly sender: 'cinnabar' | 'vmagent'
  readonly killed: 'sender' | 'destination'
  /** How values are handed to the sender. */
  readonly by: FeedProtocol
  /** Whether what is lost is a fault of the rig, or counted for who lost it. */
  readonly isOurs: boolean
}

const ours = { sender: 'cinnabar', killed: 'sender', by: 'remote-write', isOurs: true } as const
const scenes: readonly Scene[] = [
  { ...ours, name: 'otlpIn', destination: 'prometheus', by: 'otlp' },
  { ...ours, name: 'cinnabarToPrometheus', destination: 'prometheus' },
  { ...ours, name: 'cinnabarToVictoria', destination: 'victoria-metrics' },
  { ...ours, name: 'prometheusKilled', destination: 'prometheus', killed: 'destination' },
  { ...ours, name: 'victoriaKilled', destination: 'victoria-metrics', killed: 'destination', isOurs: false },
  { ...ours, name: 'vmagentToVictoria', destination: 'victoria-metrics', sender: 'vmagent', isOurs: false },
]

export const drains: Rig = (options) => drainsIn(options, () => true)

/** The scenes that are wanted, beside each other: most of their time goes into programs that start again, and retries. */
export async function drainsIn(options: RigOptions, isWanted: (name: string) => boolean): Promise<Totals> {
  const totals: Record<string, number> = { lost: 0, unexpected: 0, reused: 0 }
  const wanted = scenes.filter(({ name, destination, sender }) => {
    return isWanted(name) && isThere(destination) && (sender !== 'vmagent' || isThere('vmagent'))
  })
  const runs = await Promise.allSettled(wanted.map((scene) => runCourse('drains', options, new Run(scene, options))))
  for (const [index, run] of runs.entries()) {
    if (run.status === 'rejected') throw run.reason
    const scene = wanted[index] as Scene
    const { kills = 0, promised = 0, lost = 0 } = run.value
    totals[`${scene.name}Kills`] = kills
    totals[`${scene.name}Promised`] = promised
    totals[`${scene.name}Lost`] = lost
    if (scene.isOurs) totals['lost'] = (totals['lost'] as number) + lost
    options.say(`${scene.name}: ${promised} values promised, ${lost} lost in ${kills} kills`)
  }
  return totals
}

export function isThere(program: string): boolean {
  return spawnSync('which', [program]).status === 0
}

/** What values are handed to, and what is killed. */
interface Sender {
  readonly url: string
  readonly token?: string
  start(): Promise<void>
  kill(): Promise<void>
  remove(): Promise<void>
}

class Run {
  readonly moment: string
  readonly #scene: Scene
  readonly #options: RigOptions
  readonly #random: Random
  #feed: PromisedFeed | undefined
  #destination: StackProgram | undefined
  #sender: Sender | undefined

  constructor(scene: Scene, options: RigOptions) {
    this.moment = scene.name
    this.#scene = scene
    this.#options = options
    this.#random = new Random(options.seed)
  }

  async all(): Promise<Totals> {
    const { destination: kind, sender: who, killed, by, isOurs } = this.#scene
    const destination = await (kind === 'prometheus' ? StackProgram.prometheus() : StackProgram.victoriaMetrics())
    this.#destination = destination
    await destination.start()
    const sender = await (who === 'vmagent' ? vmagent(destination) : cinnabar(destination, by))
    this.#sender = sender
    const { url, token } = sender
    const feed = new PromisedFeed({ url, token, protocol: by }, Date.now() - AGE_MS)
    this.#feed = feed
    const fed = feed.run(PAUSE_MS)
    const kills = await this.#kill(killed === 'sender' ? sender : destination, feed)
    feed.isOver = true
    await fed
    const missing = async (): Promise<number> => {
      const there = await samplesAt(destination, kind, NAMES[by].shown)
      let left = 0
      for (const number of feed.promised) {
        const { n, timeMs } = feed.sampleOf(number)
        if (!there.has(`${n} ${timeMs} ${number}`)) left++
      }
      return left
    }
    const lost = await missingAtLast(missing, isOurs ? {} : { looks: LOOKS_AT_OTHERS })
    return { kills, promised: feed.promised.size, lost }
  }

  async remove(): Promise<void> {
    if (this.#feed !== undefined) this.#feed.isOver = true
    await this.#sender?.kill().catch(() => {})
    await this.#sender?.remove()
    await this.#destination?.remove()
  }

  /** Gives how often. Each life has values, so that there is something to be lost: how long that takes depends on the machine. */
  async #kill(victim: Pick<Sender, 'start' | 'kill'>, feed: PromisedFeed): Promise<number> {
    let kills = 0
    for (; kills < this.#options.count; kills++) {
      await morePromised(feed)
      await setTimeout(FIRST_LIFE_MS + this.#random.below(MORE_LIFE_MS))
      await victim.kill()
      await victim.start()
    }
    await morePromised(feed)
    return kills
  }
}

async function morePromised({ promised }: PromisedFeed): Promise<void> {
  const before = promised.size
  await until('values are promised', () => promised.size > before)
}

async function vmagent(to: StackProgram): Promise<Sender> {
  const agent = await StackProgram.vmagent(to)
  await agent.start()
  return agent
}

/** A server with a drain that names what is written to it. It runs, and keeps its ports. */
async function cinnabar(to: StackProgram, by: FeedProtocol): Promise<Sender> {
  const { family } = NAMES[by]
  const drain = `[[drain]]
name = "d"
role = "operator"
url = "prometheus+${to.url}${WRITE}"
metrics = ["${family}"]
batch_age = "50ms"
`
  const [tcp, http] = [await freePort(), await freePort()]
  const server = new ServerProcess(drain, { tcp, http })
  try {
    await server.start()
    const admin = await server.seat()
    const token = await tokenOfPublisher(admin, family)
    admin.peer.destroy()
    return {
      url: `http://127.0.0.1:${http}`,
      token,
      start: () => server.start(),
      kill: async () => void (await server.end('SIGKILL')),
      remove: () => server.remove(),
    }
  } catch (error) {
    await server.remove()
    throw error
  }
}

interface Matrix {
  readonly data: {
    readonly result: readonly {
      readonly metric: { readonly n: string }
      readonly values: readonly [number, string][]
    }[]
  }
}

/** A line of the export of VictoriaMetrics. */
interface Exported {
  readonly metric: { readonly n: string }
  readonly values: readonly number[]
  readonly timestamps: readonly number[]
}

/** As `series time value`. */
async function samplesAt({ url }: StackProgram, kind: Scene['destination'], metric: string): Promise<Set<string>> {
  const samples = new Set<string>()
  if (kind === 'prometheus') {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(`${metric}[1h]`)}`)
    const { data } = (await answer.json()) as Matrix
    for (const { metric: labels, values } of data.result) {
      for (const [seconds, value] of values) samples.add(`${labels.n} ${Math.round(seconds * 1_000)} ${value}`)
    }
    return samples
  }
  const answer = await fetch(`${url}/api/v1/export?match[]=${metric}&reduce_mem_usage=1`)
  for (const line of (await answer.text()).split('\n').filter((one) => one !== '')) {
    const { metric: labels, values, timestamps } = JSON.parse(line) as Exported
    for (const [at, value] of values.entries()) samples.add(`${labels.n} ${timestamps[at]} ${value}`)
  }
  return samples
}
