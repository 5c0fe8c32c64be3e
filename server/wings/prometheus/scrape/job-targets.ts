/** A job with any number of targets: what comes of its addresses, and of those that rules drop or that cannot be scraped. */
import type { Kit } from '../../../kit/kit.ts'
import type { SensorStatus, StatusEntry } from '../../../kit/metrics.ts'
import { type FoundTargets, type ScrapeJob, type TargetSpec, targetsOf } from './job.ts'

/** Problems that are shown. */
const MAX_SHOWN = 5

export interface JobTargetsOptions extends Pick<Kit, 'log'> {
  readonly job: ScrapeJob
  /** What it is called in `producer.sensors`. */
  readonly name: string
}

export class JobTargets implements StatusEntry {
  readonly owner: { readonly tenant: string }
  readonly #options: JobTargetsOptions
  readonly #found: FoundTargets

  constructor(options: JobTargetsOptions) {
    const { job, name, log } = options
    this.#options = options
    this.owner = { tenant: job.tenant }
    this.#found = targetsOf(job)
    const { problems } = this.#found
    if (problems.length > 0)
      log.warn({ job: name, problems: problems.slice(0, MAX_SHOWN) }, 'targets cannot be scraped')
  }

  get specs(): readonly TargetSpec[] {
    return this.#found.specs
  }

  status(): SensorStatus {
    const { specs, dropped, problems } = this.#found
    const more = problems.length - MAX_SHOWN
    return {
      name: `scrape/${this.#options.name}`,
      state: problems.length > 0 ? 'failed' : 'measuring',
      detail: [...problems.slice(0, MAX_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])].join('; '),
      counters: { targets: specs.length, dropped, refused: problems.length },
    }
  }
}
