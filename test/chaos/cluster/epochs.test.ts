/** That the judge of the log finds what it is there for. */
import { expect, it } from 'vitest'
import { EpochJudge, type LogHeaders } from './epochs.ts'

const epoch = (number: number, node: string): LogHeaders => ({ kind: 'epoch', epoch: number, node })
const batch = (number: number, node: string): LogHeaders => ({ kind: 'batch', epoch: number, node })

function faultsOf(...messages: readonly LogHeaders[]): string[] {
  const judge = new EpochJudge()
  for (const message of messages) judge.take(message)
  return judge.faults
}

it('finds nothing where each epoch has one leader', () => {
  expect(faultsOf(epoch(1, 'n1'), batch(1, 'n1'), epoch(2, 'n2'), batch(2, 'n2'), epoch(3, 'n2'))).toEqual([])
})

it.each<[string, LogHeaders[], string]>([
  ['two leaders', [epoch(1, 'n1'), epoch(1, 'n2')], 'n1 and n2 lead in epoch 1'],
  ['a batch of another node', [epoch(1, 'n1'), batch(1, 'n2')], 'n2 appends in epoch 1, in which n1 leads'],
  ['a batch of nobody', [batch(1, 'n2')], 'n2 appends in epoch 1, in which nobody leads'],
  [
    'a batch of a leader that was deposed',
    [epoch(1, 'n1'), epoch(2, 'n2'), batch(1, 'n1')],
    'n1 appends in epoch 1 after epoch 2 has begun',
  ],
  ['an epoch that comes too late', [epoch(2, 'n2'), epoch(1, 'n1')], 'epoch 1 of n1 begins after epoch 2'],
])('finds %s', (_, messages, fault) => {
  expect(faultsOf(...messages)).toEqual([fault])
})
