import { expect, test } from 'vitest'
import { Tally } from '../../../../server/wings/gmetric/hosts.ts'

test('bad packets are counted by kind and by source, sources beyond the bound in one sum', () => {
  const tally = new Tally(2)
  tally.countBad('malformed', '10.0.0.1')
  tally.countBad('unknownId', '10.0.0.2')
  tally.countBad('malformed', '10.0.0.3')
  tally.countBad('unparsable', '10.0.0.1')
  tally.countBad('unknownId', '10.0.0.4')
  expect(tally.counters).toMatchObject({ malformed: 2, unknownId: 2, unparsable: 1 })
  expect(Object.fromEntries(tally.badBySource)).toEqual({ '10.0.0.1': 2, '10.0.0.2': 1 })
  expect(tally.badFromOthers).toBe(2)
})
