/**
 * The `prometheus.yml` that `prometheus.scrape_config` names: read at the start, which fails if it cannot be used, and at each
 * reload, which then leaves the jobs as they were and says why.
 */
import { resolve } from 'node:path'
import { ConfigError } from '../../../kit/config.ts'
import type { Kit } from '../../../kit/kit.ts'
import type { PrometheusSection } from '../config.ts'
import type { ScrapeJob } from './job.ts'

type Keys = Pick<PrometheusSection, 'scrapeConfig' | 'scrapeTenant'>

export class ScrapeConfigFile {
  readonly #kit: Pick<Kit, 'self' | 'log' | 'peer'>
  #jobs: readonly ScrapeJob[] = []
  #reads = 0

  constructor(kit: Pick<Kit, 'self' | 'log' | 'peer'>) {
    this.#kit = kit
  }

  /** Its jobs; none without a file. Rejects with ConfigError if it cannot be used. */
  async read({ scrapeConfig, scrapeTenant }: Keys): Promise<readonly ScrapeJob[]> {
    const read = ++this.#reads
    const jobs = scrapeConfig === undefined ? [] : await this.#readFile(scrapeConfig, scrapeTenant)
    if (read === this.#reads) this.#jobs = jobs
    return this.#jobs
  }

  /** Hands over its jobs as they are now, or those from before if it cannot be used. */
  readAgain(keys: Keys, take: (jobs: readonly ScrapeJob[]) => void): void {
    if (keys.scrapeConfig === undefined) {
      this.#reads++
      this.#jobs = []
      take(this.#jobs)
      return
    }
    const read = this.#reads + 1
    const last = (jobs: readonly ScrapeJob[]): void => {
      if (read === this.#reads) take(jobs)
    }
    this.read(keys).then(last, (error: unknown) => {
      this.#report(error)
      last(this.#jobs)
    })
  }

  async #readFile(path: string, tenant: string): Promise<readonly ScrapeJob[]> {
    const { readPrometheusYml } = await import('./prometheus-yml.ts')
    return readPrometheusYml(resolve(this.#kit.self.configDirectory, path), tenant)
  }

  #report(error: unknown): void {
    const { log, peer } = this.#kit
    const problems = error instanceof ConfigError ? error.problems : []
    const detail = error instanceof Error ? error.message : String(error)
    log.error({ problems, detail }, '`prometheus.scrape_config` cannot be used: its jobs stay as they were')
    peer.notice({ severity: 'error', subject: 'scrape', detail: `prometheus.scrape_config: ${detail.split('\n')[0]}` })
  }
}
