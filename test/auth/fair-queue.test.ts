import { expect, test } from 'vitest'
import { FairQueue, type QueuedJob } from '../../auth/fair-queue.ts'

class Job implements QueuedJob {
  readonly lane: string
  readonly name: string
  gone = false
  dropped = 0
  readonly isGone = (): boolean => this.gone

  constructor(name: string) {
    this.name = name
    this.lane = name.charAt(0)
  }

  drop(): void {
    this.dropped++
  }
}

/** Jobs `a1`, `b7` and so on: the letter is the lane. */
function queued(max: number, ...names: string[]): { queue: FairQueue<Job>; jobs: Job[] } {
  const queue = new FairQueue<Job>(max)
  const jobs = names.map((name) => new Job(name))
  for (const job of jobs) queue.add(job)
  return { queue, jobs }
}

function order(queue: FairQueue<Job>): string {
  const names: string[] = []
  for (let job = queue.take(); job !== undefined; job = queue.take()) names.push(job.name)
  expect(queue.size).toBe(0)
  return names.join(' ')
}

const dropped = (jobs: Job[]): string => jobs.flatMap((job) => new Array(job.dropped).fill(job.name)).join(' ')

test('lanes take turns, and jobs of one lane keep their order', () => {
  const { queue } = queued(10, 'a1', 'a2', 'a3', 'b1', 'c1', 'c2')
  expect(queue.size).toBe(6)
  expect(order(queue)).toBe('a1 b1 c1 a2 c2 a3')
  expect(queue.take()).toBeUndefined()
})

test('a full queue drops the newest job of the longest lane for one that has less', () => {
  const { queue, jobs } = queued(4, 'a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'b3', 'c1')
  expect(dropped(jobs)).toBe('a2 a3 a4 a5 b3')
  expect(order(queue)).toBe('a1 b1 c1 b2')
})

test('where all lanes have the same, the next is dropped itself', () => {
  const { queue, jobs } = queued(3, 'a1', 'b1', 'c1', 'd1', 'a2')
  expect(dropped(jobs)).toBe('d1 a2')
  expect(order(queue)).toBe('a1 b1 c1')
})

test('jobs that nobody waits for are dropped, when it is their turn or their place is needed', () => {
  const { queue, jobs } = queued(3, 'a1', 'a2', 'b1')
  for (const job of jobs.slice(0, 2)) job.gone = true
  const more = new Job('c1')
  queue.add(more)
  expect([dropped(jobs), queue.size]).toEqual(['a1 a2', 2])
  more.gone = true
  expect(order(queue)).toBe('b1')
  expect(more.dropped).toBe(1)
})
