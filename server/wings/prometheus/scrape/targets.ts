/** All targets of the tables `[[scrape]]`: a reload puts other ones in their place, and leaves those alone that stay the same. */

import type { Kit } from '../../../kit/kit.ts'
import type { LabelledFamily, Requests } from '../../../kit/labelled-sensor.ts'
import type { StatusEntry } from '../../../kit/metrics.ts'
import type { ScrapeTable } from './config.ts'
import { Fetcher } from './fetcher.ts'
import { ScrapeTarget } from './target.ts'

export class ScrapeTargets {
  /** One of each target; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #kit: Kit
  /** By their tables, as text. */
  readonly #targets = new Map<string, ScrapeTarget>()
  #isStarted = false

  constructor(kit: Kit) {
    this.#kit = kit
  }

  /** The longest interval, milliseconds. */
  get longestMs(): number {
    let longest = 0
    for (const { table } of this.#targets.values()) longest = Math.max(longest, table.intervalMs)
    return longest
  }

  /** What the sensor of a tenant requests: its targets come and go. */
  requestsOf(tenant: string): Requests {
    const own = (): ScrapeTarget[] => [...this.#targets.values()].filter(({ table }) => table.tenant === tenant)
    return {
      expected: () => own().map(({ placeholder }) => placeholder),
      refresh(selects) {
        const asked = own().filter(({ placeholder }) => selects(undefined, placeholder.labels))
        const answers = asked.flatMap((target) => target.refresh() ?? [])
        return answers.length === 0 ? undefined : Promise.all(answers)
      },
    }
  }

  replace(tables: readonly ScrapeTable[], family: LabelledFamily): void {
    const wanted = new Map(tables.map((table) => [JSON.stringify(table), table]))
    for (const [key, target] of this.#targets) if (!wanted.has(key)) this.#remove(key, target)
    for (const [key, table] of wanted) if (!this.#targets.has(key)) this.#add(key, table, family)
    this.statuses.splice(0, Number.POSITIVE_INFINITY, ...this.#targets.values())
  }

  start(): void {
    this.#isStarted = true
    for (const target of this.#targets.values()) target.start()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#targets.values()].map((target) => target.stop()))
  }

  #add(key: string, table: ScrapeTable, family: LabelledFamily): void {
    const { self, poll } = this.#kit
    const sensor = family.of(table.tenant)
    const target = new ScrapeTarget({
      ...this.#kit,
      table,
      sensor,
      fetcher: new Fetcher({ ...table, software: self.software }),
    })
    this.#targets.set(key, target)
    if (!this.#isStarted) return
    target.start()
    // Instances that were there before may want it.
    poll.run(sensor, poll.demand.matchAll())
  }

  #remove(key: string, target: ScrapeTarget): void {
    this.#targets.delete(key)
    const { poll } = this.#kit
    poll.demand.died(target.placeholder)
    target.close().catch((error: unknown) => poll.failed(target.sensor, error))
  }
}
