/**
 * The state of the agents that QMF expects to survive restarts, in the database: whoever serves the database is the same agent
 * to its brokers. Older servers kept it in a file of the data directory: it is read while the database has none, and stays for
 * those who go back to such a server.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Banks } from '../../../../protocol/qmf/types.ts'
import type { QmfAgentRow, StoredPeers } from '../../../kit/peer.ts'
import type { Logger } from '../../../kit/running.ts'
import { isBanks } from './inventory.ts'

const OLD_FILE = 'qmf-agent.json'
/** An object id has 12 bits for it; 0 is for objects that persist. */
const MAX_BOOT = 0xfff
/** Ten times what a thousand brokers need. */
const MAX_FILE_BYTES = 1 << 20

export interface AgentStateOptions {
  /** What the database has; undefined before the first agent. */
  readonly stored: QmfAgentRow | undefined
  /** The data directory, which may have the file of an older server. */
  readonly directory: string
  readonly journal: Pick<StoredPeers['journal'], 'change'>
  readonly log: Pick<Logger, 'warn'>
}

/** Who the agents are, the number of this start, and the banks that each broker gave. */
export class AgentState {
  readonly systemId: string
  /** The number of this start, 1..4095, one more than the last one. */
  readonly boot: number
  readonly #banks: Map<string, Banks>
  readonly #journal: AgentStateOptions['journal']

  /** Never throws: where nothing can be read, the agents are new ones to their brokers, and nothing else is lost. */
  constructor({ stored, directory, journal, log }: AgentStateOptions) {
    const { systemId, boot, banks } =
      stored === undefined ? readOldFile(join(directory, OLD_FILE), log) : { ...stored, banks: parsed(stored.banks) }
    this.#journal = journal
    this.systemId = typeof systemId === 'string' && isUuid(systemId) ? systemId : randomUUID()
    const last = Number(boot)
    this.boot = Number.isInteger(last) && last > 0 && last < MAX_BOOT ? last + 1 : 1
    this.#banks = new Map(
      Object.entries(recordIn(banks) ?? {}).filter((entry): entry is [string, Banks] => isBanks(entry[1])),
    )
    this.#put()
  }

  /** Returns the last banks at a broker of the configuration. */
  banks(broker: string): Banks | undefined {
    return this.#banks.get(broker)
  }

  keep(broker: string, { brokerBank, agentBank }: Banks): void {
    const before = this.#banks.get(broker)
    if (before?.brokerBank === brokerBank && before.agentBank === agentBank) return
    this.#banks.set(broker, { brokerBank, agentBank })
    this.#put()
  }

  #put(): void {
    const { systemId, boot } = this
    const banks = JSON.stringify(Object.fromEntries(this.#banks))
    this.#journal.change({ put: 'qmf agent', row: { systemId, boot, banks } })
  }
}

/** Empty if there is none, or nothing of use in it. */
function readOldFile(file: string, log: Pick<Logger, 'warn'>): Readonly<Record<string, unknown>> {
  try {
    const stat = statSync(file)
    if (!stat.isFile() || stat.size > MAX_FILE_BYTES) {
      throw new Error(`it is not a file of at most ${MAX_FILE_BYTES} bytes`)
    }
    const read = recordIn(JSON.parse(readFileSync(file, 'utf8')))
    if (read === undefined) throw new Error('it is not a JSON object')
    return read
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      const message = 'the state file of the QMF agents cannot be read: they will be new agents to their brokers'
      log.warn({ file, err: error }, message)
    }
    return {}
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function recordIn(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}
