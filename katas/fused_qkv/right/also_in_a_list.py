# style: the layer is kept in an nn.ModuleList as well, under a longer name
import math, torch
from torch import nn
class FusedQKVSelfAttention(nn.Module):
    def __init__(s,a,b):
        super().__init__(); s.layers=nn.ModuleList([nn.Linear(a,3*b)]); s.qkv_proj=s.layers[0]
    def forward(s,x):
        q,k,v=s.layers[0](x).chunk(3,-1)
        return (q@k.mT/math.sqrt(q.shape[-1])).softmax(-1)@v
