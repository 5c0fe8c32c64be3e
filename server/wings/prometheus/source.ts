/** The source `prometheus`: what others write by remote write, and what is scraped; a sensor for each tenant. */
import { LabelledFamily } from '../../kit/labelled-sensor.ts'
import { Publication } from '../../kit/publication.ts'
import type { Source } from '../../kit/source.ts'
import type { prometheusSection } from './config.ts'
import { PROMETHEUS_FAMILY, WriteDoor } from './door.ts'
import type { scrapeSection } from './scrape/config.ts'
import { ScrapeTargets } from './scrape/targets.ts'

/** A series of a target is kept for so many intervals at least, so that it does not end between two scrapes. */
const KEPT_INTERVALS = 3

export const prometheus: Source<typeof prometheusSection, { readonly scrape: typeof scrapeSection }> = {
  open(context, config, { scrape }) {
    const { hub, quotas, clock, intake, work, server } = context
    let { keepMs } = config
    const targets = new ScrapeTargets(context)
    const family = new LabelledFamily({
      family: PROMETHEUS_FAMILY,
      kind: 'prometheus',
      from: 'POST /api/v1/write',
      hub,
      quotas,
      clock,
      keptMs: () => Math.max(keepMs, KEPT_INTERVALS * targets.longestMs),
      isPublished: true,
      requests: (tenant) => targets.requestsOf(tenant),
    })
    const publication = new Publication({ family, hub, intake, work, clock, rights: server.rights })
    targets.replace(scrape, family)
    return {
      published: [PROMETHEUS_FAMILY],
      doors: [new WriteDoor({ publication, work })],
      statuses: targets.statuses,
      async listen(listeners) {
        listeners.opened(targets).start()
      },
      sweep: () => family.sweep(),
      reload: (config, { scrape }) => {
        keepMs = config.keepMs
        targets.replace(scrape, family)
      },
    }
  },
}
