/** The source `prometheus`: what others write by remote write, and what is scraped; a sensor for each tenant. */
import type { LabelledFamily } from '../../kit/labelled-sensor.ts'
import type { Source } from '../../kit/source.ts'
import type { prometheusSection } from './config.ts'
import { WriteDoor } from './door.ts'
import { DescribedFamilies } from './families.ts'
import { PROMETHEUS_FAMILY } from './metric-types.ts'
import type { scrapeSection } from './scrape/config.ts'
import { ScrapeConfigFile } from './scrape/config-file.ts'
import { ScrapeTargets } from './scrape/targets.ts'

/** A series of a target is kept for so many intervals at least, so that it does not end between two scrapes. */
const KEPT_INTERVALS = 3

export const prometheus: Source<typeof prometheusSection, { readonly scrape: typeof scrapeSection }> = {
  async open(kit, config, { scrape }) {
    const { door, poll } = kit
    let { keepMs } = config
    const metadata = new DescribedFamilies()
    const targets = new ScrapeTargets(kit, (tenant) => family.of(tenant))
    const family: LabelledFamily = door.http(
      {
        family: PROMETHEUS_FAMILY,
        kind: 'prometheus',
        from: 'POST /api/v1/write',
        keptMs: () => Math.max(keepMs, KEPT_INTERVALS * targets.longestMs),
        ended: (tenant) => metadata.forget(tenant),
        requests: (tenant) => targets.requestsOf(tenant),
      },
      (publication) => new WriteDoor({ publication, metadata, poll }),
    )
    const file = new ScrapeConfigFile(kit)
    targets.replace([...scrape, ...(await file.read(config))])
    return {
      statuses: targets.statuses,
      listen: () => targets.start(),
      sweep() {
        family.sweep()
        void targets.look()
      },
      reload: (config, { scrape }) => {
        keepMs = config.keepMs
        file.readAgain(config, (jobs) => targets.replace([...scrape, ...jobs]))
      },
      close: () => targets.close(),
    }
  },
}
