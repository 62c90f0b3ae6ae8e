/** The work: what it throws makes the slot a failed one. */
export const writeReport = async ({ slot, token, signal }, { EDGELECT_R2: bucket }) => {
  const orders = await bucket.get('orders.json');
  if (orders === null) throw new Error('there is no orders.json to report on');
  const { length } = await orders.json();
  // Right before what is changed: the authority may have ended meanwhile.
  signal.throwIfAborted();
  // Needs no check of the token: its key is the slot, and a slot is run once.
  await bucket.put(`reports/${slot}.json`, JSON.stringify({ orders: length, token }));
};
