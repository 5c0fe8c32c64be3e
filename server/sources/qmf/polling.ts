/**
 * G: which objects there are, and what they are worth. Asked for every interval where a class is wanted and its agent does
 * not broadcast, and rarely for everything else, to know what could be wanted. An answer is for a name of a class: brokers
 * do not look at the package, so neither does anything here.
 */
import { Agent, BROKER_AGENT } from './agent.ts'
import type { QmfCounters } from './counters.ts'
import type { KnownObjects } from './objects.ts'
import type { Requests } from './requests.ts'

export interface PollingOptions {
  readonly requests: Requests
  readonly objects: KnownObjects
  readonly intervalMs: number
  readonly mostAgents: number
  readonly counters: QmfCounters
  /** Names of the classes that have objects. */
  readonly classes: ReadonlySet<string>
  readonly nowMs: () => number
}

/** A class that was asked for. */
interface Place {
  isAsked: boolean
  /** Monotonic. */
  askedMs: number
}

/** By them the console's own objects are told from others', and other agents are found. */
const FIRST = ['session', 'queue', 'agent', 'connection']
/** There are more of them than of everything else: where they leave no room, nothing but they is left out. */
const LAST = ['binding', 'subscription']

/**
 * For how long broadcasts are all that is needed of a class. Each change is told once: not here where the queue overflowed,
 * and to nobody where anybody asked for the object before (qpid-stat does), since for qpidd it is told by that.
 */
const TRUSTED_MS = 60_000

export class Polling {
  readonly #options: PollingOptions
  readonly #agents = new Map<string, Agent>([[BROKER_AGENT, new Agent(BROKER_AGENT)]])
  readonly #wanted = new Set<string>()
  readonly #places = new Map<string, Place>()
  #isStarted = false
  #open = 0
  #done: (() => void) | undefined

  constructor(options: PollingOptions) {
    this.#options = options
  }

  /** Classes of that name are asked for now (but not before the first round) and every interval, or not any more. */
  want(className: string, isWanted: boolean): void {
    if (!isWanted) this.#wanted.delete(className)
    else if (!this.#wanted.has(className)) {
      this.#wanted.add(className)
      this.askClass(className)
    }
  }

  heartbeat(banks: string, nowMs: number): void {
    this.#agents.get(banks)?.heartbeat(nowMs)
  }

  /** Whether an agent broadcasts changes at all. */
  publishes(banks: string, doesPublish: boolean): void {
    const agent = this.#agents.get(banks)
    if (agent !== undefined) agent.doesPublish = doesPublish
  }

  found(banks: string): void {
    const { counters, mostAgents, classes } = this.#options
    if (this.#agents.has(banks)) return
    if (this.#agents.size >= mostAgents) {
      counters.agentsFull++
      return
    }
    const agent = new Agent(banks)
    this.#agents.set(banks, agent)
    for (const className of classes) this.#ask(agent, className, this.#done !== undefined)
  }

  lost(banks: string): void {
    if (banks === BROKER_AGENT || !this.#agents.delete(banks)) return
    for (const place of [...this.#places.keys()]) if (place.startsWith(`${banks} `)) this.#places.delete(place)
    this.#options.objects.missingAgent(banks)
  }

  askClass(className: string): void {
    for (const agent of this.#agents.values()) this.#ask(agent, className)
  }

  /** The agent has an object of that class that is not known; asked for as often as if it were polled. */
  askAgent(banks: string, className: string): void {
    const agent = this.#agents.get(banks)
    const { nowMs, classes } = this.#options
    const { intervalMs } = this.#options
    if (agent !== undefined && classes.has(className) && this.#isDue(agent, className, nowMs(), intervalMs)) {
      this.#ask(agent, className)
    }
  }

  /** Asks for all that is not heard of otherwise. `done`: all was answered or given up; not called if a round is under way. */
  round(done: () => void): void {
    if (this.#done !== undefined) return
    this.#done = done
    this.#isStarted = true
    const classes = [...this.#options.classes]
    const rank = (name: string): number => {
      if (FIRST.includes(name)) return FIRST.indexOf(name)
      return LAST.includes(name) ? FIRST.length + 1 : FIRST.length
    }
    classes.sort((a, b) => rank(a) - rank(b))
    this.#open++
    for (const agent of [...this.#agents.values()]) {
      const asked = classes.filter((name) => !this.#isHeardOf(agent, name))
      for (const name of agent.isSilent && !agent.isBroker ? asked.slice(0, 1) : asked) this.#ask(agent, name, true)
    }
    this.#close()
  }

  /** To be called every second or so. */
  sweep(nowMs: number): void {
    const { intervalMs } = this.#options
    for (const agent of this.#agents.values()) {
      const everyMs = agent.isBroadcasting(nowMs) ? TRUSTED_MS : intervalMs
      for (const className of this.#wanted) {
        if (this.#isPolled(agent, className) && this.#isDue(agent, className, nowMs, everyMs)) {
          this.#ask(agent, className)
        }
      }
    }
  }

  /** Asked for again and again, since somebody wants it. */
  #isPolled(agent: Agent, className: string): boolean {
    return this.#wanted.has(className) && (agent.isBroker || this.#options.objects.has(agent.banks, className))
  }

  #isDue(agent: Agent, className: string, nowMs: number, everyMs: number): boolean {
    const place = this.#places.get(`${agent.banks} ${className}`)
    return place === undefined || nowMs >= place.askedMs + everyMs
  }

  #isHeardOf(agent: Agent, className: string): boolean {
    return this.#places.has(`${agent.banks} ${className}`) && this.#isPolled(agent, className)
  }

  #ask(agent: Agent, className: string, isOfRound = false): void {
    const { requests, objects, nowMs } = this.#options
    // The first round goes first: it tells the console's own objects from others'.
    if (!this.#isStarted) return
    const key = `${agent.banks} ${className}`
    const place = this.#places.get(key) ?? { isAsked: false, askedMs: 0 }
    this.#places.set(key, place)
    if (place.isAsked) return
    place.askedMs = nowMs()
    const { mark } = objects
    place.isAsked = true
    if (isOfRound) this.#open++
    const refusal = requests.ask({
      to: agent.routingKey,
      message: (sequence) => ({ op: 'G', sequence, query: new Map([['_class', className]]) }),
      ended: (ending) => {
        place.isAsked = false
        if (ending === 'ended') return
        agent.isSilent = ending === 'late'
        if (ending === 'done') objects.missing(agent.banks, className, mark)
        if (isOfRound) this.#close()
      },
    })
    if (refusal === undefined) return
    place.isAsked = false
    if (isOfRound) this.#close()
  }

  #close(): void {
    if (--this.#open > 0) return
    const done = this.#done
    this.#done = undefined
    done?.()
  }
}
