/**
 * What a node reports to people: lines of the log, and notices. Only a node that leads has consumers, so notices wait until this
 * one does.
 */
import type { Logger } from '../core/log.ts'
import type { ClusterNotice, Leading } from './node-options.ts'

/** Notices that wait; the oldest give way. */
const MAX_NOTICES = 16
/** Different warnings that are given, each once. */
const MAX_WARNINGS = 64

export class Reports {
  readonly #log: Logger
  readonly #waiting: ClusterNotice[] = []
  readonly #warned = new Set<string>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** Goes to the log, and to consumers as soon as this node leads. */
  report(severity: ClusterNotice['severity'], detail: string): void {
    this.#log[severity === 'info' ? 'info' : 'warn'](detail)
    this.#waiting.push({ severity, subject: 'cluster', detail })
    if (this.#waiting.length > MAX_NOTICES) this.#waiting.shift()
  }

  /** Warns in the log, unless it has warned of the same before. */
  warnOnce(what: string, message: string): void {
    if (this.#warned.has(what) || this.#warned.size >= MAX_WARNINGS) return
    this.#warned.add(what)
    this.#log.warn(message)
  }

  /** Gives the server what has waited for it. */
  deliver(leading: Leading): void {
    for (const notice of this.#waiting.splice(0)) leading.notify(notice)
  }
}
