/**
 * Rule files that users hand in are read in a thread, unless they are short, so that nobody waits while their YAML is parsed, and what
 * that takes of memory and time is bounded. Two files are read at once, those of one tenant one after the other, so that a bad file of
 * one tenant holds up nobody else. What was read there is made into rules here, in steps.
 */
import { Worker } from 'node:worker_threads'
import type { Clock, Steps } from '../../../kit/running.ts'
import { readTable } from '../../../kit/yaml-table.ts'
import { type CheckedRuleFile, type RuleFileResult, readRuleFile, ruleGroups } from '../rules/rule-file.ts'

/** Characters that are read in a few milliseconds, whatever they are: what has very many keys or levels takes the most. */
const SHORT = 512
/** The same of a text that was taken before: only mistakes make one so slow. */
const SHORT_AGAIN = 4_096
const MAX_MS = 10_000
/** Threads at the same time. */
const MOST_AT_ONCE = 2
/** A text becomes many small objects. */
const RESOURCES = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 }

export interface ReadingServices {
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  /** Does steps, as work of a tenant. */
  readonly work: <T>(tenant: string, steps: Steps<T>) => T | Promise<T>
}

/** A file that waits for a thread. */
interface Waiting {
  readonly tenant: string
  begin(): Promise<void>
}

export class RuleReading {
  readonly #services: ReadingServices
  readonly #check: (text: string) => Promise<CheckedRuleFile>
  /** In the order in which they came. */
  readonly #waiting: Waiting[] = []
  /** The tenants of which something is read now. */
  readonly #reading = new Set<string>()

  /** `check` reads a text; it rejects if it cannot. */
  constructor(services: ReadingServices, check?: (text: string) => Promise<CheckedRuleFile>) {
    this.#services = services
    this.#check = check ?? ((text) => this.#inThread(text))
  }

  /** Reads the text of a file that was taken before. Never rejects. */
  readAgain(tenant: string, text: string): Promise<RuleFileResult> {
    return this.read(tenant, text, SHORT_AGAIN)
  }

  /** Reads the text of a file, at once if it has at most so many characters. Never rejects. */
  async read(tenant: string, text: string, most = SHORT): Promise<RuleFileResult> {
    if (text.length <= most) return readRuleFile(text)
    const checked = await new Promise<CheckedRuleFile>((resolve) => {
      this.#waiting.push({ tenant, begin: async () => resolve(await this.#checked(text)) })
      this.#begin()
    })
    if ('problems' in checked) return checked
    return { groups: await this.#services.work(tenant, ruleGroups(readTable(checked.plain))) }
  }

  /** Begins what is next: whoever came first, of the tenants of which nothing is read. */
  #begin(): void {
    while (this.#reading.size < MOST_AT_ONCE) {
      const next = this.#waiting.findIndex(({ tenant }) => !this.#reading.has(tenant))
      const [one] = next < 0 ? [] : this.#waiting.splice(next, 1)
      if (one === undefined) return
      this.#reading.add(one.tenant)
      void one.begin().finally(() => {
        this.#reading.delete(one.tenant)
        this.#begin()
      })
    }
  }

  /** Never rejects. */
  async #checked(text: string): Promise<CheckedRuleFile> {
    try {
      return await this.#check(text)
    } catch (error) {
      return refused(`it cannot be read: ${(error as Error).message}`)
    }
  }

  #inThread(text: string): Promise<CheckedRuleFile> {
    const { clock } = this.#services
    return new Promise((resolve) => {
      const worker = new Worker(new URL(import.meta.resolve('#rules-worker')), {
        name: 'rules',
        resourceLimits: RESOURCES,
        workerData: text,
      })
      const end = (checked: CheckedRuleFile): void => {
        clock.clear(timer)
        void worker.terminate()
        resolve(checked)
      }
      const timer = clock.setTimeout(() => end(refused('it takes too much time to be read: put less into it')), MAX_MS)
      worker.unref()
      worker.on('message', end)
      worker.on('error', (error: NodeJS.ErrnoException) => {
        const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
        const why = isMemory
          ? 'it takes too much memory to be read: put less into it'
          : `it cannot be read: ${error.message}`
        end(refused(why))
      })
      worker.on('exit', () => end(refused('it cannot be read: the thread has ended')))
    })
  }
}

function refused(message: string): CheckedRuleFile {
  return { problems: [{ message, line: undefined }] }
}
