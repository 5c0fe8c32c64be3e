/** The targets of all jobs: a reload puts other ones in their place, and leaves those alone that stay the same. */
import { resolve } from 'node:path'
import type { Kit } from '../../../kit/kit.ts'
import type { LabelledSensor, Requests } from '../../../kit/labelled-sensor.ts'
import type { StatusEntry } from '../../../kit/metrics.ts'
import { Fetcher } from './fetcher.ts'
import type { ScrapeJob, TargetSpec } from './job.ts'
import { JobTargets } from './job-targets.ts'
import { PLAIN_NAMES, ScrapeTarget } from './target.ts'
import { TargetFiles } from './target-files.ts'

export class ScrapeTargets {
  /** One of each target; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #kit: Kit
  readonly #sensorOf: (tenant: string) => LabelledSensor
  /** By all that is said of them, as text. */
  readonly #targets = new Map<string, ScrapeTarget>()
  #jobs: readonly JobTargets[] = []
  /** By the paths and how often they are read. */
  #files: ReadonlyMap<string, TargetFiles> = new Map()
  /** The names of jobs and targets in `producer.sensors`. */
  readonly #names = new Set<string>()
  #reading: Promise<void> | undefined
  /** Milliseconds. */
  #longestMs = 0
  #isStarted = false

  constructor(kit: Kit, sensorOf: (tenant: string) => LabelledSensor) {
    this.#kit = kit
    this.#sensorOf = sensorOf
  }

  /** The longest interval, milliseconds. */
  get longestMs(): number {
    return this.#longestMs
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

  /** Puts these jobs in force: as soon as their files are read, if they have others than before. */
  replace(jobs: readonly ScrapeJob[]): void {
    const files = new Map<string, TargetFiles>()
    const made = jobs.map((job) => ({ job, files: this.#filesOf(job, files) }))
    this.#files = files
    const put = (): void => {
      for (const { name } of this.#jobs) this.#names.delete(name)
      this.#jobs = made.map(({ job, files }) => {
        // A single target is shown alone.
        const name = job.url === undefined ? this.#nameFor(job.name) : ''
        return new JobTargets({ ...this.#kit, job, name, files })
      })
      this.#apply()
    }
    const unread = [...files.values()].filter(({ isRead }) => !isRead)
    if (unread.length === 0) put()
    else {
      this.#reading = Promise.all(unread.map((one) => one.look())).then(() => {
        if (this.#files === files) put()
      })
    }
  }

  /** Reads the files that have changed; to be called every second. */
  async look(): Promise<void> {
    const files = this.#files
    const changes = await Promise.all([...files.values()].map((one) => one.look()))
    if (this.#files === files && changes.includes(true)) this.#apply()
  }

  async start(): Promise<void> {
    await this.#reading
    this.#isStarted = true
    for (const target of this.#targets.values()) target.start()
  }

  async close(): Promise<void> {
    this.#files = new Map()
    await Promise.all([...this.#targets.values()].map((target) => target.stop()))
  }

  #filesOf(job: ScrapeJob, files: Map<string, TargetFiles>): readonly TargetFiles[] {
    const { clock, self } = this.#kit
    return job.files.map(({ paths, refreshMs }) => {
      const absolute = paths.map((path) => resolve(self.configDirectory, path))
      const key = JSON.stringify([absolute, refreshMs])
      const found = files.get(key) ?? this.#files.get(key) ?? new TargetFiles({ paths: absolute, refreshMs, clock })
      files.set(key, found)
      return found
    })
  }

  /** Makes the targets those that the jobs have now. */
  #apply(): void {
    const { poll } = this.#kit
    const specs = this.#jobs.flatMap((job) => job.find())
    const wanted = new Map(specs.map((spec) => [JSON.stringify(spec), spec]))
    for (const [key, target] of this.#targets) if (!wanted.has(key)) this.#remove(key, target)
    const sensors = new Set<LabelledSensor>()
    for (const [key, spec] of wanted) if (!this.#targets.has(key)) sensors.add(this.#add(key, spec).sensor)
    // Instances that were there before may want the new ones.
    if (this.#isStarted) for (const sensor of sensors) poll.run(sensor, poll.demand.matchAll())
    this.#longestMs = specs.reduce((longest, { intervalMs }) => Math.max(longest, intervalMs), 0)
    this.statuses.length = 0
    for (const job of this.#jobs) if (job.name !== '') this.statuses.push(job)
    for (const target of this.#targets.values()) this.statuses.push(target)
  }

  #add(key: string, spec: TargetSpec): ScrapeTarget {
    const target = new ScrapeTarget({
      ...this.#kit,
      spec,
      name: this.#nameFor(spec.shown, `${spec.name}/${spec.labels['instance']}`),
      sensor: this.#sensorOf(spec.tenant),
      fetcher: new Fetcher({ ...spec, software: this.#kit.self.software }),
    })
    this.#targets.set(key, target)
    if (this.#isStarted) target.start()
    return target
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
