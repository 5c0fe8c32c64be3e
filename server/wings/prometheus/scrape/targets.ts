/** The targets of all jobs: a reload puts other ones in their place, and leaves those alone that stay the same. */

import type { Kit } from '../../../kit/kit.ts'
import type { LabelledFamily, Requests } from '../../../kit/labelled-sensor.ts'
import type { StatusEntry } from '../../../kit/metrics.ts'
import { Fetcher } from './fetcher.ts'
import type { ScrapeJob, TargetSpec } from './job.ts'
import { JobTargets } from './job-targets.ts'
import { PLAIN_NAMES, ScrapeTarget } from './target.ts'

export class ScrapeTargets {
  /** One of each target; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #kit: Kit
  /** By all that is said of them, as text. */
  readonly #targets = new Map<string, ScrapeTarget>()
  /** Each with its name in `producer.sensors`; "" if it has one target, which is shown alone. */
  #jobs: readonly { readonly name: string; readonly targets: JobTargets }[] = []
  /** All names there. */
  readonly #names = new Set<string>()
  #isStarted = false

  constructor(kit: Kit) {
    this.#kit = kit
  }

  /** The longest interval, milliseconds. */
  get longestMs(): number {
    let longest = 0
    for (const { spec } of this.#targets.values()) longest = Math.max(longest, spec.intervalMs)
    return longest
  }

  /** What the sensor of a tenant requests: its targets come and go. */
  requestsOf(tenant: string): Requests {
    const own = (): ScrapeTarget[] => [...this.#targets.values()].filter(({ spec }) => spec.tenant === tenant)
    return {
      expected: () => own().map(({ placeholder }) => placeholder),
      refresh(selects) {
        const asked = own().filter(({ placeholder }) => selects(PLAIN_NAMES, placeholder.labels))
        const answers = asked.flatMap((target) => target.refresh() ?? [])
        return answers.length === 0 ? undefined : Promise.all(answers)
      },
    }
  }

  replace(jobs: readonly ScrapeJob[], family: LabelledFamily): void {
    for (const { name } of this.#jobs) this.#names.delete(name)
    this.#jobs = jobs.map((job) => {
      const name = job.url === undefined ? this.#nameFor(job.name) : ''
      return { name, targets: new JobTargets({ ...this.#kit, job, name }) }
    })
    const specs = this.#jobs.flatMap(({ targets }) => targets.specs)
    const wanted = new Map(specs.map((spec) => [JSON.stringify(spec), spec]))
    for (const [key, target] of this.#targets) if (!wanted.has(key)) this.#remove(key, target)
    for (const [key, spec] of wanted) if (!this.#targets.has(key)) this.#add(key, spec, family)
    const ofJobs = this.#jobs.filter(({ name }) => name !== '').map(({ targets }) => targets)
    this.statuses.splice(0, Number.POSITIVE_INFINITY, ...ofJobs, ...this.#targets.values())
  }

  start(): void {
    this.#isStarted = true
    for (const target of this.#targets.values()) target.start()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#targets.values()].map((target) => target.stop()))
  }

  #add(key: string, spec: TargetSpec, family: LabelledFamily): void {
    const { self, poll } = this.#kit
    const sensor = family.of(spec.tenant)
    const target = new ScrapeTarget({
      ...this.#kit,
      spec,
      name: this.#nameFor(spec.shown, `${spec.name}/${spec.labels['instance']}`),
      sensor,
      fetcher: new Fetcher({ ...spec, software: self.software }),
    })
    this.#targets.set(key, target)
    if (!this.#isStarted) return
    target.start()
    // Instances that were there before may want it.
    poll.run(sensor, poll.demand.matchAll())
  }

  /** The first of these names that no other one has in `producer.sensors`, or one with a number. */
  #nameFor(...preferred: readonly string[]): string {
    let name = preferred.find((one) => !this.#names.has(one))
    for (let count = 2; name === undefined || this.#names.has(name); count++) name = `${preferred.at(-1)} ${count}`
    this.#names.add(name)
    return name
  }

  #remove(key: string, target: ScrapeTarget): void {
    this.#targets.delete(key)
    this.#names.delete(target.name)
    const { poll } = this.#kit
    poll.demand.died(target.placeholder)
    target.close().catch((error: unknown) => poll.failed(target.sensor, error))
  }
}
