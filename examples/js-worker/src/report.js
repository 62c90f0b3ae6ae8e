/** The work: what it throws makes the slot a failed one. */
export const writeReport = async ({ EDGELECT_R2: bucket }, { slot, token, signal }) => {
  const orders = await bucket.get('orders.json');
  if (orders === null) throw new Error('there is no orders.json to report on');
  const { length } = await orders.json();
  // Right before what is changed: the authority may have ended meanwhile.
  signal.throwIfAborted();
  await bucket.put(`reports/${slot}.json`, JSON.stringify({ orders: length, token }));
};
