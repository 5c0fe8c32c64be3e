/**
 * A job with any number of targets: what comes of its addresses, those in files among them, and of those that rules drop or that
 * cannot be scraped.
 */
import type { Kit } from '../../../kit/kit.ts'
import type { SensorStatus, StatusEntry } from '../../../kit/metrics.ts'
import { type FoundTargets, type ScrapeJob, type TargetSpec, targetsOf } from './job.ts'
import type { TargetFiles } from './target-files.ts'

/** Problems that are shown. */
const MAX_SHOWN = 5
const NONE: FoundTargets = { specs: [], dropped: 0, problems: [] }

export interface JobTargetsOptions extends Pick<Kit, 'log' | 'peer'> {
  readonly job: ScrapeJob
  /** What it is called in `producer.sensors`. */
  readonly name: string
  /** Those of the job, in the same order. */
  readonly files: readonly TargetFiles[]
}

export class JobTargets implements StatusEntry {
  readonly owner: { readonly tenant: string }
  readonly #options: JobTargetsOptions
  #found = NONE
  #problems = ''

  constructor(options: JobTargetsOptions) {
    this.#options = options
    this.owner = { tenant: options.job.tenant }
  }

  get name(): string {
    return this.#options.name
  }

  /** Its targets as they are now; reports problems that were not there before. */
  find(): readonly TargetSpec[] {
    const { job, files } = this.#options
    const inFiles = files.flatMap(({ groups }, index) => {
      const common = job.files[index]?.labels
      return groups.map(({ targets, labels }) => ({ targets, labels: { ...common, ...labels } }))
    })
    const found = targetsOf({ ...job, groups: [...job.groups, ...inFiles] })
    this.#found = { ...found, problems: [...files.flatMap(({ problems }) => problems), ...found.problems] }
    this.#report(this.#shownProblems())
    return found.specs
  }

  #report(problems: string): void {
    if (problems === this.#problems) return
    this.#problems = problems
    if (problems === '') return
    const { log, peer, name } = this.#options
    log.warn({ job: name, problems: this.#found.problems.slice(0, MAX_SHOWN) }, 'targets of a job cannot be used')
    peer.notice({ severity: 'warning', subject: 'scrape', detail: `job ${name}: ${problems}` }, this.owner)
  }

  #shownProblems(): string {
    const { problems } = this.#found
    const more = problems.length - MAX_SHOWN
    return [...problems.slice(0, MAX_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
  }

  status(): SensorStatus {
    const { specs, dropped, problems } = this.#found
    return {
      name: `scrape/${this.name}`,
      state: problems.length > 0 ? 'failed' : 'measuring',
      detail: this.#problems,
      counters: { targets: specs.length, dropped, refused: problems.length },
    }
  }
}
