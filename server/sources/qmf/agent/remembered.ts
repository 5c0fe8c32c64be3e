/**
 * What the agents keep in the data directory, as QMF agents do: who they are, which start this is, and the banks that each
 * broker gave. Without the file they are new agents to their brokers, and nothing else is lost.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '../../../core/log.ts'
import { type Banks, isBanks } from './objects.ts'

const FILE = 'qmf-agent.json'
/** 12 bits of an object id; 0 is for objects that persist. */
const MOST_BOOTS = 0xfff
/** A thousand brokers take a tenth of it. */
const MOST_BYTES = 1 << 20

export class Remembered {
  readonly systemId: string
  /** 1..4095, one more than at the last start. */
  readonly boot: number
  readonly #banks: Map<string, Banks>
  readonly #directory: string
  readonly #log: Pick<Logger, 'warn'>

  /** Never throws: where the file cannot be written, the next start makes new agents. */
  constructor(directory: string, log: Pick<Logger, 'warn'>) {
    this.#directory = directory
    this.#log = log
    const { systemId, boot, banks } = this.#read()
    this.systemId = typeof systemId === 'string' && isUuid(systemId) ? systemId : randomUUID()
    const last = Number(boot)
    this.boot = Number.isInteger(last) && last > 0 && last < MOST_BOOTS ? last + 1 : 1
    const entries = typeof banks === 'object' && banks !== null ? Object.entries(banks) : []
    this.#banks = new Map(entries.filter((entry): entry is [string, Banks] => isBanks(entry[1])))
    this.#write()
  }

  /** Of a broker of the configuration. */
  banks(broker: string): Banks | undefined {
    return this.#banks.get(broker)
  }

  keep(broker: string, { brokerBank, agentBank }: Banks): void {
    const before = this.#banks.get(broker)
    if (before?.brokerBank === brokerBank && before.agentBank === agentBank) return
    this.#banks.set(broker, { brokerBank, agentBank })
    this.#write()
  }

  get #path(): string {
    return join(this.#directory, FILE)
  }

  #read(): Readonly<Record<string, unknown>> {
    try {
      const stat = statSync(this.#path)
      if (!stat.isFile() || stat.size > MOST_BYTES) throw new Error(`this is no file of at most ${MOST_BYTES} bytes`)
      const read: unknown = JSON.parse(readFileSync(this.#path, 'utf8'))
      if (typeof read === 'object' && read !== null) return read as Record<string, unknown>
      this.#log.warn({ file: this.#path }, 'this is not what QMF agents keep: they are new ones')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#log.warn({ file: this.#path, err: error }, 'what QMF agents keep cannot be read: they are new ones')
      }
    }
    return {}
  }

  #write(): void {
    const { systemId, boot } = this
    const text = `${JSON.stringify({ systemId, boot, banks: Object.fromEntries(this.#banks) })}\n`
    try {
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600 })
      renameSync(`${this.#path}.new`, this.#path)
    } catch (error) {
      this.#log.warn({ file: this.#path, err: error }, 'what QMF agents keep cannot be written')
    }
  }
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}
