/** A `prometheus.yml` gives the targets that Prometheus itself has with it. */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { expect, it } from 'vitest'
import { JobTargets } from '../../../../../server/wings/prometheus/scrape/job-targets.ts'
import { readPrometheusYml } from '../../../../../server/wings/prometheus/scrape/prometheus-yml.ts'
import { TargetFiles } from '../../../../../server/wings/prometheus/scrape/target-files.ts'
import { handKit } from '../../../../support/hand-kit.ts'
import { Readers } from '../../../../support/readers.ts'

const directory = new URL('../../../../vectors/prometheus/targets/', import.meta.url).pathname

interface Target {
  readonly scrapeUrl: string
  readonly labels: Readonly<Record<string, string>>
}

/** With the labels in one order, and the URL as this Node writes it. */
const textOf = ({ scrapeUrl, labels }: Target): string =>
  JSON.stringify([new URL(scrapeUrl).href, Object.entries(labels).sort()])

it('with static targets, files and rules', async () => {
  const readers = new Readers()
  const { kit } = handKit(readers.hub, readers.clock)
  const ours: Target[] = []
  for (const job of await readPrometheusYml(`${directory}prometheus.yml`, 'default')) {
    const files = job.files.map((paths) => new TargetFiles({ ...paths, clock: { monotonicMs: () => 0 } }))
    for (const one of files) await one.look()
    const targets = new JobTargets({ ...kit, job, name: job.name, files })
    for (const { url, labels } of targets.find()) {
      const { from_filepath: path, ...others } = labels
      // Prometheus was started in the directory.
      const shown = path === undefined ? others : { ...others, from_filepath: relative(directory, path) }
      ours.push({ scrapeUrl: url, labels: shown })
    }
    expect(targets.status()).toMatchObject({ state: 'measuring', counters: { refused: 0 } })
  }
  const theirs: readonly Target[] = JSON.parse(readFileSync(`${directory}targets.json`, 'utf8'))
  expect(theirs).toHaveLength(9)
  expect(ours.map(textOf).sort()).toEqual(theirs.map(textOf).sort())
})
