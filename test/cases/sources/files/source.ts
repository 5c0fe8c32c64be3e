/** `files.open`: how many files this machine has open (Linux). */
import { readFileSync } from 'node:fs'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import type { Measurement, Metric, PolledSensor } from '../../../../server/kit/metrics.ts'
import type { Source } from '../../../../server/kit/source.ts'
import type { filesSection } from './config.ts'

const open: Metric = {
  name: 'files.open',
  kind: 'continuous',
  type: BasicType.UINT64,
  unit: '1',
  description: 'Files that this machine has open.',
  parameters: [],
}

export const files: Source<typeof filesSection> = {
  open({ clock, feed }, { table }) {
    const sensor: PolledSensor = {
      polled: true,
      family: 'files.',
      owner: 'producer',
      personal: false,
      metrics: () => [open],
      metric: (name) => (name === open.name ? open : undefined),
      labels: ({ name }) => ({ name }),
      check() {},
      measure: () => ({ value: read(table), time: clock.microseconds() }),
    }
    feed.add(sensor)
    return {}
  },
}

function read(table: string): Measurement['value'] {
  try {
    const [count = ''] = readFileSync(table, 'utf8').split('\t')
    return { type: BasicType.UINT64, value: BigInt(count) }
  } catch {
    return VOID
  }
}
