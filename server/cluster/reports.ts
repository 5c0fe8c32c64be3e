/**
 * What a node reports to people: lines of the log, and notices. Only a node that leads has consumers, so notices wait while this
 * one does not.
 */
import type { Logger } from '../kernel/core/log.ts'
import type { ClusterNotice, Leading } from './node-options.ts'

/** Notices that wait; the oldest give way. */
const MAX_NOTICES = 16
/** Different warnings that are given, each once. */
const MAX_WARNINGS = 64

export class Reports {
  readonly #log: Logger
  readonly #node: string
  readonly #waiting: ClusterNotice[] = []
  readonly #warned = new Set<string>()
  #leading: Leading | undefined

  constructor(log: Logger, node: string) {
    this.#log = log
    this.#node = node
  }

  /** Goes to the log, and to consumers, now or as soon as this node leads. */
  report(severity: ClusterNotice['severity'], detail: string): void {
    this.#log[severity === 'info' ? 'info' : 'warn'](detail)
    const notice = { severity, subject: 'cluster', detail } as const
    if (this.#leading === undefined) this.#waiting.push(notice)
    else this.#leading.notify(notice)
    if (this.#waiting.length > MAX_NOTICES) this.#waiting.shift()
  }

  /** This node has founded the log of a cluster; `mayLack` as in `Replica.found`. */
  founded(cluster: string, mayLack: boolean): void {
    const lacks = mayLack ? ', which may lack records that a node had whose database is gone' : ''
    this.report('warning', `node ${this.#node} founded the log of ${cluster} with its database${lacks}`)
  }

  /** The database of this node was set aside in `path`; `why` is a part of a sentence. */
  setAside(why: string, path: string | undefined): void {
    if (path !== undefined)
      this.report('warning', `the database of node ${this.#node} ${why}: it was set aside in ${path}`)
  }

  /** Warns in the log, unless it has warned of the same before. */
  warnOnce(what: string, message: string): void {
    if (this.#isNew(what)) this.#log.warn(message)
  }

  /** Warns in the log and consumers, unless it has done so before. */
  reportOnce(what: string, detail: string): void {
    if (this.#isNew(what)) this.report('warning', detail)
  }

  /** Gives the server what has waited for it, and what comes; undefined: there is none any more. */
  deliverTo(leading: Leading | undefined): void {
    this.#leading = leading
    if (leading !== undefined) for (const notice of this.#waiting.splice(0)) leading.notify(notice)
  }

  #isNew(what: string): boolean {
    if (this.#warned.has(what) || this.#warned.size >= MAX_WARNINGS) return false
    this.#warned.add(what)
    return true
  }
}
